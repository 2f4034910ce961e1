//! Which files import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{ItemMod, ItemUse, UseTree, Visibility};

use crate::imports::for_tests;

/// One line for each group of files that import each other. An import between a module and a module
/// inside it does not count.
pub(super) fn faults(files: &[(PathBuf, String)]) -> Vec<String> {
    let modules: BTreeMap<Vec<String>, &Path> =
        files.iter().map(|(path, _)| (module_of(path), &**path)).collect();
    let parsed: Vec<(Vec<String>, Imports)> = files
        .iter()
        .map(|(path, text)| {
            let module = module_of(path);
            let mut imports = Imports { module: module.clone(), ..Imports::default() };
            imports.visit_file(&syn::parse_file(text).unwrap());
            (module, imports)
        })
        .collect();
    let exports: BTreeMap<&Vec<String>, &BTreeMap<String, Vec<String>>> =
        parsed.iter().map(|(module, imports)| (module, &imports.exports)).collect();
    let mut edges: BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
    for (module, imports) in &parsed {
        let to = edges.entry(module).or_default();
        for path in &imports.named {
            let target = resolve(path, &modules, &exports);
            if !target.starts_with(module) && !module.starts_with(&target) {
                to.insert(target);
            }
        }
    }
    let reaches = |from: &Vec<String>| {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(module) = open.pop() {
            for next in edges.get(module).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> =
        edges.keys().map(|module| (*module, reaches(module))).collect();
    let mut groups = BTreeSet::new();
    for (module, there) in &reached {
        let group: BTreeSet<&Path> = there
            .iter()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(*module)))
            .map(|other| modules[other])
            .collect();
        if !group.is_empty() {
            groups.insert(group);
        }
    }
    let line = |group: &BTreeSet<&Path>| {
        let names: Vec<String> = group.iter().map(|path| path.display().to_string()).collect();
        format!("these files import each other: {}", names.join(", "))
    };
    groups.iter().map(line).collect()
}

/// The module that defines what `path` names: follows re-exports, then takes the longest module path.
fn resolve(
    path: &[String],
    modules: &BTreeMap<Vec<String>, &Path>,
    exports: &BTreeMap<&Vec<String>, &BTreeMap<String, Vec<String>>>,
) -> Vec<String> {
    let mut path = path.to_vec();
    for _ in 0..8 {
        let length = (0..=path.len()).rev().find(|end| modules.contains_key(&path[..*end]));
        let (module, rest) = path.split_at(length.unwrap_or(0));
        let module = module.to_vec();
        let through = rest.first().and_then(|name| exports.get(&module)?.get(name));
        match through {
            Some(target) => path = target.clone(),
            None => return module,
        }
    }
    Vec::new()
}

/// `graph/query/mod.rs` is `["graph", "query"]`; the root is `[]`.
fn module_of(path: &Path) -> Vec<String> {
    let stem = path.with_extension("");
    let parts = stem.iter().map(|part| part.to_string_lossy().into_owned());
    parts.filter(|part| part != "mod" && part != "lib").collect()
}

/// The paths that a file imports, from the root of the crate, and the names that it re-exports.
#[derive(Default)]
struct Imports {
    module: Vec<String>,
    named: Vec<Vec<String>>,
    exports: BTreeMap<String, Vec<String>>,
}

impl Imports {
    fn absolute(&self, path: &[String]) -> Option<Vec<String>> {
        let mut here = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.module.clone(),
            _ => return None,
        };
        for part in path {
            match part.as_str() {
                "crate" | "self" => {}
                "super" => drop(here.pop()),
                _ => here.push(part.clone()),
            }
        }
        Some(here)
    }

    fn tree(&mut self, tree: &UseTree, before: &[String], public: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        let (path, name) = match tree {
            UseTree::Path(path) => return self.tree(&path.tree, &with(&path.ident), public),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.tree(tree, before, public));
            }
            UseTree::Name(name) => (with(&name.ident), name.ident.to_string()),
            UseTree::Rename(name) => (with(&name.ident), name.rename.to_string()),
            UseTree::Glob(_) => (before.to_vec(), String::new()),
        };
        let in_child = [&["self".to_owned()], &*path].concat();
        if public && let Some(path) = self.absolute(&path).or_else(|| self.absolute(&in_child)) {
            self.exports.insert(name, path);
        }
        self.named.extend(self.absolute(&path));
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !for_tests(&item.attrs) {
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !for_tests(&item.attrs) {
            let public = !matches!(item.vis, Visibility::Inherited);
            self.tree(&item.tree, &[], public);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        self.named.extend(self.absolute(&parts));
        visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> =
            files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect();
        faults(&files)
    }

    #[test]
    fn a_circle_is_found_directly_and_through_a_re_export() {
        let fault = ["these files import each other: m/a.rs, m/b.rs"];
        let b = ("m/b.rs", "use super::a::A; pub struct B;");
        let parent = ("m/mod.rs", "mod a; mod b; pub use a::A; pub(crate) use b::B;");
        assert_eq!(found(&[("m/a.rs", "use crate::m::b::B; pub struct A;"), parent, b]), fault);
        assert_eq!(found(&[("m/a.rs", "use super::B; pub struct A;"), parent, b]), fault);
        assert_eq!(found(&[("m/a.rs", "pub struct A(super::b::B);"), parent, b]), fault);
    }

    #[test]
    fn a_parent_and_its_child_may_import_each_other() {
        let child = ("m/a.rs", "use super::M; pub struct A;");
        assert_eq!(found(&[("m/mod.rs", "mod a; use self::a::A; struct M;"), child]), [""; 0]);
        assert_eq!(
            found(&[("m/mod.rs", "mod a; struct M;"), child, ("n.rs", "use crate::m::M;")]),
            [""; 0]
        );
    }
}
