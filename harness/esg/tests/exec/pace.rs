use std::time::{Duration, Instant};

use harness_esg::{Executor, Load, Sync};

use super::{builder, run, worker};

/// Timings. Run them alone: `cargo test -p harness-esg --test exec -- --ignored --nocapture`.
#[test]
#[ignore = "it measures, and needs the machine for itself"]
fn pace() {
    let builder = builder();
    let mut starts: Vec<Duration> = (0..20)
        .map(|_| {
            let begun = Instant::now();
            let python = builder.clone().start().unwrap();
            let took = begun.elapsed();
            drop(python);
            took
        })
        .collect();
    starts.sort();
    println!("start to ready: {:?} at best, {:?} median", starts[0], starts[10]);
    let mut python = worker(Duration::from_secs(30));
    let mut turns: Vec<Duration> = (0..2000)
        .map(|_| {
            let begun = Instant::now();
            run(&mut python, "pass");
            begun.elapsed()
        })
        .collect();
    turns.sort();
    println!("an empty step: {:?} at best, {:?} median", turns[0], turns[1000]);
    let mut turns: Vec<Duration> = (0..2000)
        .map(|_| {
            let begun = Instant::now();
            python.sync(&Sync::default()).unwrap();
            begun.elapsed()
        })
        .collect();
    turns.sort();
    println!("moving nothing: {:?} at best, {:?} median", turns[0], turns[1000]);
    let begun = Instant::now();
    let ran = run(&mut python, "x = bytes(50_000_000)");
    let made = begun.elapsed();
    let (unit, blob) = ran.units.into_iter().next().unwrap();
    let members: Vec<_> = unit.members.iter().map(|member| member.entity.clone()).collect();
    let (take, blob) = (members.clone(), blob.unwrap());
    let load = Load { key: unit.key, members, take, blob, refs: unit.refs };
    let sync = Sync { load: vec![load], ..Sync::default() };
    python.fresh().unwrap();
    let begun = Instant::now();
    python.sync(&sync).unwrap();
    println!("50 MB: made and stored in {made:?}, brought back in {:?}", begun.elapsed());
}
