//! Random loops of a counter agree with a plain interpreter.

use proptest::prelude::*;

use crate::common::*;

#[derive(StepId, Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    A,
    B,
    C,
    D,
}

const NODES: [Node; 4] = [Node::A, Node::B, Node::C, Node::D];

#[derive(Signal, Clone, Copy, Debug, PartialEq)]
enum Sign {
    Low,
    High,
    Full,
}

/// One step: adds `add`, fails its first `fails` attempts, has `retries`, routes by the count.
#[derive(Clone, Debug)]
struct Plan {
    add: u32,
    waits: bool,
    fails: u32,
    retries: u32,
    error_step: bool,
    low: usize,
    high: usize,
    limit: u32,
}

fn plan() -> impl Strategy<Value = Plan> {
    (0u32..4, any::<bool>(), 0u32..3, 0u32..3, any::<bool>(), 0usize..4, 0usize..4, 1u32..6)
        .prop_map(|(add, waits, fails, retries, error_step, low, high, limit)| Plan {
            add,
            waits,
            fails,
            retries,
            error_step,
            low,
            high,
            limit,
        })
}

#[derive(Debug, PartialEq)]
enum End {
    Ended,
    Failed,
    Exhausted(Limit),
}

fn sign(n: u32, full: u32) -> Sign {
    match n {
        n if n >= full => Sign::Full,
        n if n % 2 == 0 => Sign::Low,
        _ => Sign::High,
    }
}

/// What the loop does, said plainly: which steps run (retries too), the count, the end. Every step
/// gives way to the next one of the four, `D` to none; errors go to `D`.
fn interpret(plans: &[Plan; 4], full: u32, most: u64) -> (Vec<usize>, u32, End) {
    let (mut ran, mut n, mut steps) = (Vec::new(), 0, 0);
    let mut visits = [1, 0, 0, 0];
    let mut at = 0;
    loop {
        if steps >= most {
            return (ran, n, End::Exhausted(Limit::Steps));
        }
        let plan = &plans[at];
        let attempts = plan.fails.min(plan.retries) + 1;
        ran.extend((0..attempts).map(|_| at));
        steps += 1;
        let mut next = if plan.fails > plan.retries {
            if !plan.error_step || at == 3 {
                return (ran, n, End::Failed);
            }
            3
        } else {
            n += plan.add;
            match sign(n, full) {
                Sign::Full => return (ran, n, End::Ended),
                Sign::Low => plan.low,
                Sign::High => plan.high,
            }
        };
        while next < 3 && visits[next] >= plans[next].limit {
            next += 1;
        }
        visits[next] += 1;
        at = next;
    }
}

fn declare(plans: &[Plan; 4], full: u32, most: u64) -> Harness<Ctx, Log> {
    Harness::<Ctx, Log>::builder("random")
        .start(Node::A)
        .budget(Budget::steps(most))
        .steps(|define, node| {
            let plan = plans[node as usize].clone();
            let (retries, limit, low, high) = (plan.retries, plan.limit, plan.low, plan.high);
            let error_step = plan.error_step && node != Node::D;
            let mut step = define
                .run(move |_log, cx| {
                    let (add, waits, fails) = (plan.add, plan.waits, plan.fails);
                    async move {
                        if waits {
                            tokio::task::yield_now().await;
                        }
                        if cx.attempt() <= fails {
                            Err(Oops("no"))?
                        }
                        Ok(Log::update().n(add))
                    }
                })
                .retry(Retry::every(std::time::Duration::ZERO).times(retries));
            if node != Node::D {
                step = step.at_most(limit, NODES[node as usize + 1]);
            }
            if error_step {
                step = step.on_error(Node::D);
            }
            step.route(
                move |log| sign(log.n, full),
                move |signal| match signal {
                    Sign::Low => to(NODES[low]),
                    Sign::High => to(NODES[high]),
                    Sign::Full => end(),
                },
            )
        })
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_random_loop_does_what_a_plain_interpreter_does(
        plans in [plan(), plan(), plan(), plan()],
        full in 1u32..30,
        most in 0u64..40,
    ) {
        let (ran, n, end) = interpret(&plans, full, most);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let (bench, outcome) = runtime.block_on(async {
            let bench = Bench::of(declare(&plans, full, most));
            let outcome = bench.run().await;
            (bench, outcome)
        });
        let names: Vec<String> = ran.iter().map(|at| format!("{:?}", NODES[*at])).collect();
        prop_assert_eq!(bench.seen.started(), names);
        prop_assert_eq!(outcome.state().unwrap().n, n);
        let found = match outcome {
            Outcome::Ended(_) => End::Ended,
            Outcome::Failed(_) => End::Failed,
            Outcome::Exhausted(it) => End::Exhausted(it.limit),
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(found, end);
    }
}
