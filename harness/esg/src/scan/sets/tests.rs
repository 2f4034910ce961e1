use super::{NameMap, NameSet};

fn set(names: &[&str]) -> NameSet {
    names.iter().collect()
}

#[test]
fn a_set_is_in_order_and_has_each_name_once() {
    let names = set(&["b", "a", "aa", "b", ""]);
    assert_eq!(names.iter().collect::<Vec<_>>(), ["", "a", "aa", "b"]);
    assert_eq!(names.iter().next_back(), Some("b"));
    assert_eq!((names.len(), names.is_empty()), (4, false));
    for name in ["", "a", "aa", "b"] {
        assert!(names.contains(name), "{name}");
    }
    for name in ["ab", "c", "A"] {
        assert!(!names.contains(name), "{name}");
    }
    assert!(!NameSet::default().contains(""));
}

#[test]
fn sets_are_equal_by_their_names() {
    let scan = super::super::scan("a = b; c = b");
    assert_eq!(scan.reads, set(&["b"]));
    assert_ne!(scan.reads, set(&["c"]));
    assert_ne!(scan.writes, scan.reads);
    assert_eq!(scan.writes, scan.sure_writes);
    let mut grown = set(&["c"]);
    assert!(grown.insert("a") && !grown.insert("c"));
    assert_eq!(scan.writes, grown);
    assert_eq!(format!("{:?}", scan.writes), r#"{"a", "c"}"#);
    assert_eq!(serde_json::to_string(&scan.writes).unwrap(), r#"["a","c"]"#);
}

#[test]
fn a_map_finds_what_a_name_has() {
    let mut map: NameMap =
        [("b", set(&["x"])), ("a", set(&[])), ("b", set(&["y"]))].into_iter().collect();
    assert_eq!(map.keys().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(map.get("b"), Some(&set(&["y"])));
    assert!(map.contains_key("a") && !map.contains_key("c"));
    map.insert("c", set(&["z"]));
    assert_eq!(map.len(), 3);
    assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"a":[],"b":["y"],"c":["z"]}"#);
}
