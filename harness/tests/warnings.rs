//! The derives' output causes no warnings, whatever lints the user enables.
#![deny(warnings, missing_docs, missing_debug_implementations, unreachable_pub)]
#![deny(rust_2018_idioms, unused, clippy::all, clippy::pedantic)]
#![allow(missing_docs, reason = "of the test itself")]

/// A library's public items.
pub mod library {
    #![deny(missing_docs)]

    use std::collections::{BTreeMap, BTreeSet};

    use harness::{Context, Question, Signal, State, StepId};
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    struct Inner {
        id: u8,
        children: Vec<Inner>,
    }

    fn overwrite(field: &mut u8, change: u8) {
        *field = change;
    }

    type Lines = Vec<String>;
    type Counts<T> = BTreeMap<T, u32>;

    /// A state with fields of private types.
    #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    pub struct Public {
        #[state(provides)]
        inner: Inner,
        #[state(provides, reduce = upsert(id))]
        rows: Vec<Inner>,
        #[state(reduce = append)]
        own: Vec<Self>,
        #[state(provides, reduce = max)]
        max: Option<u8>,
        #[state(provides, reduce = union)]
        set: BTreeSet<String>,
        #[state(reduce = merge, provides)]
        map: BTreeMap<String, Inner>,
        #[state(provides, reduce = append)]
        lines: Lines,
        #[state(reduce = merge, provides)]
        counts: Counts<String>,
        #[state(provides, reduce = overwrite)]
        custom: u8,
        /// A public field.
        #[state(provides)]
        pub text: String,
    }

    /// A state without fields.
    #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    pub struct Empty {}

    /// A context with slots of private types.
    #[derive(Context, Debug)]
    pub struct Ctx {
        /// Its tools.
        pub tools: Vec<u8>,
        #[slot(required)]
        inner: Inner,
        #[slot(runtime)]
        seed: u64,
    }

    /// A context without slots.
    #[derive(Context, Debug)]
    pub struct Nothing {}

    /// A signal.
    #[derive(Signal, Clone, Copy, Debug)]
    pub enum Next {
        /// The only one.
        Done,
    }

    /// A step.
    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    pub enum Step {
        /// The only one.
        Only,
    }

    /// A question.
    #[derive(Question, Debug, Serialize, Deserialize)]
    #[question(answer = bool)]
    pub struct Sure {}

    impl Ctx {
        /// Reads the private fields.
        #[must_use]
        pub fn sum(&self) -> u64 {
            self.seed + u64::from(self.inner.id)
        }
    }
}

/// A program's private items.
mod program {
    use harness::{Context, State};
    use serde::{Deserialize, Serialize};

    #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    struct Private {
        text: String,
    }

    #[derive(Context)]
    struct Ctx {
        tools: Vec<u8>,
        #[slot(runtime)]
        seed: u64,
    }

    #[test]
    fn is_used() {
        let update = Private::update().text("x");
        let ctx = Ctx::assemble(
            Ctx::fixed().tools(Vec::new()).build(),
            (),
            Ctx::runtime().seed(1).build(),
        );
        assert_eq!(format!("{update:?}"), "PrivateUpdate { text }");
        assert_eq!((ctx.tools.len(), ctx.seed), (0, 1));
    }
}
