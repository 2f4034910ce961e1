//! What programs allocate on this thread.

use allocation_counter::measure;

use super::Figure;

/// Allocations of one step: what a run of 20,000 steps makes beyond a run of 10,000.
pub(super) fn compare(case: &str, ours: impl Fn(u64), floor: impl Fn(u64)) -> Figure {
    let (ours, floor) = (per_step(ours), per_step(floor));
    let case = case.to_owned();
    Figure { case, ours, floor, unit: "allocations/step", ratio: ours / floor }
}

fn per_step(run: impl Fn(u64)) -> f64 {
    let calls = |steps| measure(|| run(steps)).count_total;
    calls(20_000);
    (calls(20_000) as f64 - calls(10_000) as f64) / 10_000.0
}

/// Bytes that a program allocated and did not free.
pub(super) fn left(run: impl FnOnce()) -> i64 {
    measure(run).bytes_current
}

/// The most bytes that were allocated at a time.
pub(super) fn peak(run: impl FnOnce()) -> u64 {
    measure(run).bytes_max
}
