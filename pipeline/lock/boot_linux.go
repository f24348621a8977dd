package lock

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot returns how long the machine has been running, suspends included: the clock
// behind time.Now stands still during those.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("read CLOCK_BOOTTIME: " + err.Error()) // every supported kernel has it
	}
	return time.Duration(ts.Nano())
}
