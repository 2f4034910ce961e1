//! Kills at any moment.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use harness::Sessions;

use crate::check::{Found, Log, ended, traces, undisturbed};
use crate::child::Other;
use crate::drive::name;
use crate::outside::{AIMS, Outside, Phase, SLOTS};
use crate::place::{Place, report};
use crate::random::Random;
use crate::store::{Kind, Store, in_each_store};
use crate::work::{open, runtime};

/// How many kills there are at least in each phase.
const EACH: usize = 20;

/// How many kills there are where a process that was killed keeps its leases until they expire.
const ON_A_SERVER: usize = 12;

/// What the processes that were killed have said, and what became of it.
struct Torture<'a> {
    dir: &'a Path,
    store: Store,
    /// What was acknowledged, by session.
    acknowledged: BTreeMap<u64, BTreeSet<u64>>,
    done: BTreeSet<u64>,
    /// The last session that was begun.
    last: u64,
    /// Effects that were on record when their process was killed.
    recorded: BTreeSet<(String, String)>,
    traced: usize,
    given_up: usize,
    /// The last turn that was said to have ended, by session.
    ended: BTreeMap<u64, usize>,
    settled: usize,
}

impl Torture<'_> {
    /// One that starts with the first session that is not done; or, if it would have to wait for those
    /// that are held, past those that were begun.
    fn start(&self, sync: bool, past: bool, last: Option<u64>) -> Other {
        std::fs::write(self.dir.join("phases"), [Phase::Other as u8; SLOTS]).unwrap();
        let first = match past {
            true => self.last + 1 + SLOTS as u64,
            false => (0..).find(|number| !self.done.contains(number)).unwrap(),
        };
        let last = last.map_or(String::new(), |last| last.to_string());
        let settings =
            [("FIRST", first.to_string()), ("LAST", last), ("SYNC", u8::from(sync).to_string())];
        Other::start("kill", self.dir, &settings)
    }

    /// Takes down what a process has said; which sessions it was at.
    fn take(&mut self, lines: Vec<String>) -> BTreeSet<u64> {
        let mut touched = BTreeSet::new();
        for line in lines {
            let parts: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| parts[at].trim_start_matches('s').parse::<u64>().unwrap();
            match parts[0] {
                "c" => {
                    touched.insert(number(1));
                    self.acknowledged.entry(number(1)).or_default().insert(number(2));
                }
                "d" => drop(self.done.insert(number(1))),
                "o" => {
                    self.settled += 1;
                    if parts[2] == "ended" {
                        touched.insert(number(1));
                        let ended = self.ended.entry(number(1)).or_default();
                        *ended = parts[3].parse::<usize>().unwrap().max(*ended);
                    }
                }
                "given" => self.given_up += 1,
                "ready" => {}
                _ => panic!("{line}"),
            }
        }
        self.last = touched.iter().copied().max().unwrap_or(0).max(self.last);
        touched
    }

    /// What must hold right behind a kill.
    async fn look(&mut self, mut touched: BTreeSet<u64>) {
        let (new, end) = Outside::traces(&self.dir.join("effects"), self.traced);
        self.traced = end;
        for trace in new {
            let effect = (trace.session.clone(), trace.key.clone());
            assert!(!self.recorded.contains(&effect), "repeated though on record: {trace:?}");
            let number = trace.session.trim_start_matches('s').parse().unwrap();
            self.last = self.last.max(number);
            touched.insert(number);
        }
        for number in touched {
            let name = name(number);
            let log = Log::read(&self.store, &name).await.unwrap_or_else(|| panic!("no {name}"));
            let acknowledged = self.acknowledged.get(&number).and_then(BTreeSet::last).copied();
            assert!(acknowledged.unwrap_or(0) <= log.head, "{name} is cut at {}", log.head);
            let ended = self.ended.get(&number).copied().unwrap_or(0);
            assert!(log.turns() >= ended, "{name} had ended turn {ended}");
            self.recorded.extend(log.effects().into_iter().map(|key| (name.clone(), key)));
        }
    }
}

fn phases(file: &std::fs::File) -> [Phase; SLOTS] {
    let mut bytes = [0; SLOTS];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes.map(Phase::of)
}

/// Waits until some session is in the phase; not indefinitely.
fn aim(file: &std::fs::File, phase: Phase) {
    let begun = Instant::now();
    while !phases(file).contains(&phase) && begun.elapsed() < Duration::from_millis(300) {
        std::hint::spin_loop();
    }
}

in_each_store!(
    whatever_is_killed_when_nothing_acknowledged_is_lost_and_nothing_done_twice,
    torture
);

fn torture(kind: Kind) {
    let _alone = crate::alone();
    let kills = std::env::var("HARNESS_TORTURE_KILLS").ok().and_then(|n| n.parse().ok());
    let on_server = kind.is_server();
    let kills: usize = kills.unwrap_or(if on_server { ON_A_SERVER } else { 500 });
    let (mut random, seed) = Random::seeded();
    let place = Place::new("torture", Some(seed));
    let dir = place.path();
    kind.choose(dir);
    let begun = Instant::now();
    let runtime = runtime();
    std::fs::write(dir.join("phases"), [Phase::Other as u8; SLOTS]).unwrap();
    let file = std::fs::File::open(dir.join("phases")).unwrap();
    std::fs::write(dir.join("effects"), []).unwrap();
    let undisturbed = runtime.block_on(undisturbed(&Outside::new(&dir.join("scratch"))));
    let store = runtime.block_on(open(dir, false));
    let mut torture = Torture {
        dir,
        store: store.clone(),
        acknowledged: BTreeMap::new(),
        done: BTreeSet::new(),
        last: 0,
        recorded: BTreeSet::new(),
        traced: 0,
        given_up: 0,
        ended: BTreeMap::new(),
        settled: 0,
    };
    let mut histogram: BTreeMap<Phase, usize> = BTreeMap::new();
    let mut kill = 0;
    loop {
        let rare = |aim: &Phase| histogram.get(aim).copied().unwrap_or(0) < EACH;
        // Some phases are short: it may take more kills to hit them.
        if kill >= kills && (on_server || kill >= 2 * kills || !AIMS.iter().any(rare)) {
            break;
        }
        let wanted = AIMS.into_iter().find(|aim| kill % 2 == 1 && rare(aim));
        kill += 1;
        let sync = wanted != Some(Phase::Append) && random.below(4) > 0;
        // Now and then it finds sessions whose leases have expired.
        let mut other = torture.start(sync, on_server && kill % 5 > 0, None);
        let mut said = vec![other.hear()];
        std::thread::sleep(random.micros(if on_server { 200_000 } else { 40_000 }));
        if let Some(phase) = wanted {
            aim(&file, phase);
        }
        said.extend(other.kill());
        let hit: BTreeSet<Phase> = phases(&file).into_iter().collect();
        for phase in &hit {
            if *phase != Phase::Other || hit.len() == 1 {
                *histogram.entry(*phase).or_default() += 1;
            }
        }
        let touched = torture.take(said);
        runtime.block_on(torture.look(touched));
    }
    let killed = begun.elapsed();
    // Undisturbed from here on, all come to their end.
    let (status, said) = torture.start(true, false, Some(torture.last)).end();
    assert!(status.success(), "{status}");
    torture.take(said);
    let sessions = Sessions::new(store.clone());
    let mut found = Found::default();
    let none = BTreeSet::new();
    runtime.block_on(async {
        for number in 0..=torture.last {
            let acknowledged = torture.acknowledged.get(&number).unwrap_or(&none);
            ended(&store, &sessions, number, acknowledged, &undisturbed, &mut found).await;
        }
    });
    let (all, _) = Outside::traces(&dir.join("effects"), 0);
    traces(&all, &mut found);
    report(&format!(
        "torture, {kind:?}: {kill} kills in {killed:.1?} (all in {:.1?}): {histogram:?}; {} sessions, {} \
         acknowledged commits, {} settled; {found:?}; given up and resumed: {}",
        begun.elapsed(),
        torture.last + 1,
        torture.acknowledged.values().map(BTreeSet::len).sum::<usize>(),
        torture.settled,
        torture.given_up,
    ));
    for phase in AIMS {
        let hit = histogram.get(&phase).copied().unwrap_or(0);
        assert!(on_server || kills < 500 || hit >= EACH, "only {hit} kills in {phase:?}");
    }
}
