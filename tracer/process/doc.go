// Package process describes the process that is traced: its kind of machine, its mapped
// files, which of its files the dynamic loader searches in which order, and whether it
// runs under an emulator.
package process
