package cli

import "strings"

// Nearest returns the word that was probably meant by another one: the only one that begins
// with it, or the first of those that differ least from it. It returns "" if all differ
// much.
func Nearest(given string, words []string) string {
	given = strings.ToLower(given)
	if given == "" {
		return ""
	}
	begin, longer := "", 0
	for _, word := range words {
		if strings.HasPrefix(strings.ToLower(word), given) {
			begin = word
			longer++
		}
	}
	if longer == 1 && len(given) > 1 {
		return begin
	}
	nearest, least := "", max(2, len(given)/3+1)
	for _, word := range words {
		d := distance(given, strings.ToLower(word))
		if d < least && d < len(word) && d < len(given) {
			nearest, least = word, d
		}
	}
	return nearest
}

// distance returns how many letters of a must be inserted, removed, replaced or swapped with
// their neighbour to get b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			other := 1
			if a[i-1] == b[j-1] {
				other = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+other)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
