//! Numbers as they are written.

use serde_json::{Value, json};

/// The number that its shortest text names: 0.7, where widening gives 0.699999988079071.
pub(crate) fn decimal(number: f32) -> Value {
    json!(number.to_string().parse::<f64>().unwrap_or_else(|_| f64::from(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_sent_as_it_was_written() {
        assert_eq!(decimal(0.7).to_string(), "0.7");
        assert_eq!(decimal(1.0).to_string(), "1.0");
        assert_eq!(decimal(0.1).to_string(), "0.1");
    }
}
