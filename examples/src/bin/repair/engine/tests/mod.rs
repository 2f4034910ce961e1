//! Tests of the engine as a whole, most of them against real Python: they need `python3` and fail
//! without it.

mod corpus;
mod limits;
mod rules;
mod shipped;

use std::path::Path;
use std::time::Duration;

use super::source::Script;
use super::{Ending, Fault, Limits, Python, Ran, load};

fn python() -> Python {
    Python::find().expect("the tests need python3")
}

/// Longer than the defaults, for machines under load.
fn limits() -> Limits {
    Limits { wall: Duration::from_secs(20), ..Limits::default() }
}

async fn run(source: &str) -> Ran {
    python().run(source, "script.py", &limits()).await.unwrap()
}

async fn fault(source: &str) -> Fault {
    let ran = run(source).await;
    match ran.ending {
        Ending::Raised(fault) => *fault,
        other => panic!("{source}{other:?}\n{}", ran.stderr),
    }
}

fn stubborn(name: &str) -> Script {
    load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/stubborn").join(name)).unwrap()
}
