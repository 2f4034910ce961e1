//! The names at the crate root of `harness`: few enough to read, and each of them used every day.
//! Everything else lives in a module.
#![allow(missing_docs, clippy::unwrap_used)]

use std::path::Path;

use syn::{Attribute, Item, UseTree, Visibility};

/// The most names that the root exports, beside its modules.
const MAX_NAMES: usize = 45;

/// The public items of the root, without modules and hidden items. A name that is a trait and a
/// derive counts once.
fn names(source: &str) -> Vec<String> {
    let file = syn::parse_file(source).unwrap();
    let mut found = Vec::new();
    for item in file.items {
        match item {
            Item::Use(it) if is_public(&it.vis, &it.attrs) => collect(&it.tree, &mut found),
            Item::Const(it) if is_public(&it.vis, &it.attrs) => found.push(it.ident.to_string()),
            Item::Enum(it) if is_public(&it.vis, &it.attrs) => found.push(it.ident.to_string()),
            Item::ExternCrate(it) if is_public(&it.vis, &it.attrs) => {
                found.push(it.rename.map_or(it.ident, |(_, name)| name).to_string());
            }
            Item::Fn(it) if is_public(&it.vis, &it.attrs) => found.push(it.sig.ident.to_string()),
            Item::Static(it) if is_public(&it.vis, &it.attrs) => found.push(it.ident.to_string()),
            Item::Struct(it) if is_public(&it.vis, &it.attrs) => found.push(it.ident.to_string()),
            Item::Trait(it) if is_public(&it.vis, &it.attrs) => found.push(it.ident.to_string()),
            Item::Type(it) if is_public(&it.vis, &it.attrs) => found.push(it.ident.to_string()),
            Item::Macro(it) if it.attrs.iter().any(|attr| attr.path().is_ident("macro_export")) => {
                found.extend(it.ident.map(|name| name.to_string()));
            }
            _ => {}
        }
    }
    found
}

fn is_public(visibility: &Visibility, attrs: &[Attribute]) -> bool {
    matches!(visibility, Visibility::Public(_)) && !attrs.iter().any(is_hidden)
}

fn is_hidden(attr: &Attribute) -> bool {
    attr.path().is_ident("doc")
        && attr.parse_args::<syn::Ident>().is_ok_and(|word| word == "hidden")
}

fn collect(tree: &UseTree, found: &mut Vec<String>) {
    match tree {
        UseTree::Path(path) => collect(&path.tree, found),
        UseTree::Group(group) => group.items.iter().for_each(|tree| collect(tree, found)),
        UseTree::Name(name) => found.push(name.ident.to_string()),
        UseTree::Rename(rename) => found.push(rename.rename.to_string()),
        UseTree::Glob(_) => found.push("*".to_owned()),
    }
}

#[test]
fn the_root_has_few_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let names = names(&std::fs::read_to_string(root).unwrap());
    assert!(names.iter().any(|name| name == "Harness"), "the root is elsewhere: {names:?}");
    assert!(!names.iter().any(|name| name == "*"), "a glob hides what the root exports");
    let count = names.len();
    assert!(
        count <= MAX_NAMES,
        "the root has {count} names (at most {MAX_NAMES}; move some into a module): {names:?}"
    );
}

#[test]
fn names_are_counted_as_a_user_sees_them() {
    let source = "
        pub mod m;
        mod private;
        pub use a::{B, c::D, e::F as G};
        pub use h::*;
        use i::J;
        pub(crate) use k::L;
        #[doc(hidden)]
        pub use m::N;
        #[doc(inline)]
        pub use o::P;
        pub fn q() {}
        pub extern crate r as s;
        #[macro_export]
        macro_rules! t { () => {} }
    ";
    assert_eq!(names(source), ["B", "D", "G", "*", "P", "q", "s", "t"]);
}
