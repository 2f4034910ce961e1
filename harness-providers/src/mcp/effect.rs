//! What a tool does to the world, from the hints of its server.

use harness::llm::EffectClass;
use rmcp::model::ToolAnnotations;

/// The class of a tool without an override.
///
/// Hints come from a server that may be wrong or hostile. A hint that a tool is harmless would let its
/// calls be repeated, so it counts only if hints are trusted. A hint that it is dangerous always counts.
pub(super) fn class(hints: Option<&ToolAnnotations>, trusted: bool) -> EffectClass {
    let Some(hints) = hints else {
        return EffectClass::External;
    };
    match (hints.read_only_hint, hints.destructive_hint) {
        (_, Some(true)) => EffectClass::Destructive,
        (Some(true), _) if trusted => EffectClass::Read,
        // Only a tool that says both adds nothing when it is called again.
        (_, Some(false)) if trusted && hints.is_idempotent() && closed(hints) => EffectClass::Write,
        _ => EffectClass::External,
    }
}

/// Whether the tool reaches nothing outside of its server.
fn closed(hints: &ToolAnnotations) -> bool {
    hints.open_world_hint == Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(hints: (Option<bool>, Option<bool>, Option<bool>, Option<bool>)) -> ToolAnnotations {
        ToolAnnotations::from_raw(None, hints.0, hints.1, hints.2, hints.3)
    }

    #[test]
    fn hints_count_as_they_are_trusted() {
        use EffectClass::{Destructive, External, Read, Write};
        let (yes, no) = (Some(true), Some(false));
        for (hints, untrusted, trusted) in [
            ((None, None, None, None), External, External),
            ((yes, None, None, None), External, Read),
            ((yes, no, None, None), External, Read),
            ((yes, yes, None, None), Destructive, Destructive),
            ((no, None, None, None), External, External),
            ((no, yes, yes, no), Destructive, Destructive),
            ((no, no, yes, no), External, Write),
            ((no, no, yes, None), External, External),
            ((no, no, no, no), External, External),
            ((no, None, yes, no), External, External),
        ] {
            assert_eq!(class(Some(&of(hints)), false), untrusted, "{hints:?}");
            assert_eq!(class(Some(&of(hints)), true), trusted, "{hints:?}");
        }
        assert_eq!(class(None, true), External);
    }

    proptest! {
        #[test]
        fn no_untrusted_hint_makes_a_call_repeatable(hints: (Option<bool>, Option<bool>, Option<bool>, Option<bool>)) {
            let hints = of(hints);
            prop_assert!(class(Some(&hints), false).is_guarded());
            prop_assert!(class(Some(&hints), false) >= class(Some(&hints), true));
        }
    }
}
