use super::*;

fn written(value: &Value) -> String {
    String::from_utf8(canonical(value)).unwrap()
}

/// The examples of RFC 8785, sections 3.2.2 and 3.2.3.
#[test]
fn the_canonical_form_is_that_of_the_rfc() {
    let sample = r#"{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    let expected = concat!(
        r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
        r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
    );
    assert_eq!(written(&serde_json::from_str(sample).unwrap()), expected);
    let keys = r#"{
        "\u20ac": "Euro Sign", "\r": "Carriage Return",
        "\ufb33": "Hebrew Dalet With Dagesh", "1": "One",
        "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
        "\u00f6": "Latin Small O With Diaeresis"
    }"#;
    let text = written(&serde_json::from_str(keys).unwrap());
    let order = ["Carriage", "One", "Control", "Latin", "Euro", "Emoji", "Hebrew"];
    let places: Vec<_> = order.iter().map(|word| text.find(word).unwrap()).collect();
    assert!(places.is_sorted(), "{text}");
}

/// Samples of RFC 8785, appendix B.
#[test]
fn numbers_are_written_as_the_rfc_writes_them() {
    let samples = [
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ];
    for (bits, expected) in samples {
        assert_eq!(written(&json!(f64::from_bits(bits))), expected);
    }
}

#[test]
fn a_large_integer_has_a_digest_of_its_own() {
    let all = [
        "9007199254740992",
        "9007199254740993",
        "9007199254740994",
        "-9007199254740993",
        "18446744073709551615",
        "18446744073709551614",
    ];
    let mut digests: Vec<_> = all
        .iter()
        .map(|number| Sha256::of(&serde_json::from_str(&format!(r#"{{"n": {number}}}"#)).unwrap()))
        .collect();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), all.len());
}

#[test]
fn a_digest_is_that_of_the_canonical_text() {
    // `printf '{"a":1}' | sha256sum`
    let expected = "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862";
    assert_eq!(Sha256::of(&json!({"a": 1})).as_str(), expected);
}

#[test]
fn everything_that_a_tool_is_changes_its_digest() {
    use crate::llm::EffectClass;
    let spec = ToolSpec::new("t", "d", json!({"type": "object"}));
    let others = [
        ToolSpec::new("u", "d", json!({"type": "object"})),
        ToolSpec::new("t", "e", json!({"type": "object"})),
        ToolSpec::new("t", "d", json!({"type": "object", "title": "x"})),
        spec.clone().effect(EffectClass::Read),
    ];
    for other in others {
        assert_ne!(Sha256::of_tool(&spec), Sha256::of_tool(&other));
    }
    let patient = spec.clone().timeout(std::time::Duration::from_secs(1));
    assert_eq!(Sha256::of_tool(&spec), Sha256::of_tool(&patient));
}
