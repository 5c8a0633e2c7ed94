package record

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Add adds every field, even fields added later: all are set to numbers, and must have
// doubled.
func TestStatsAdd(t *testing.T) {
	fill := func(n uint64) Stats {
		var s Stats
		numbers(reflect.ValueOf(&s).Elem(), n)
		return s
	}
	sum, more := fill(7), fill(7)
	sum.Add(&more)
	if diff := cmp.Diff(fill(14), sum); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var none Stats
	if none.Add(&more); none.Broken["x"] != 7 || more.Broken["x"] != 7 {
		t.Errorf("%v from %v", none.Broken, more.Broken)
	}
}

// numbers sets all numbers in v to n, bools to true, and fills strings, maps and slices.
func numbers(v reflect.Value, n uint64) {
	switch v.Kind() {
	case reflect.Uint64:
		v.SetUint(n)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]uint64{"x": n}))
	case reflect.String:
		v.SetString("x")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		numbers(v.Index(0), n)
	case reflect.Array:
		for i := range v.Len() {
			numbers(v.Index(i), n)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			numbers(field, n)
		}
	default:
		panic(v.Kind())
	}
}
