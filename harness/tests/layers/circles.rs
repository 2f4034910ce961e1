//! Circles of imports between the files of a crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::visit::{self, Visit};
use syn::{ItemMod, ItemUse, UseTree};

use super::imports::for_tests;

/// A file's module, as `["file", "index"]`.
type Module = Vec<String>;

/// Each circle of files that import each other, but for those between a module and its own
/// submodules: one line for each file that is part of one.
pub(super) fn faults(files: &[(&Path, &str)]) -> Vec<String> {
    let modules: BTreeSet<Module> = files.iter().map(|(path, _)| module_of(path)).collect();
    let mut names: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (path, text) in files {
        let own = module_of(path);
        let mut uses = Uses { own: own.clone(), named: Vec::new() };
        uses.visit_file(&syn::parse_file(text).unwrap());
        let targets = uses.named.iter().filter_map(|path| longest(&modules, path));
        let related = |other: &Module| other.starts_with(&own) || own.starts_with(other);
        let targets = targets.filter(|target| !related(target));
        names.insert(own.clone(), targets.collect());
    }
    let circular = |start: &Module| {
        let (mut open, mut seen) = (vec![start], BTreeSet::new());
        while let Some(module) = open.pop() {
            for next in &names[module] {
                if next == start {
                    return true;
                }
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        false
    };
    let circular = names.keys().filter(|module| circular(module));
    circular.map(|module| format!("`{}` is in a circle of imports", module.join("::"))).collect()
}

fn module_of(path: &Path) -> Module {
    let stem = path.with_extension("");
    let parts = stem.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    parts.filter(|part| part != "mod" && part != "lib").collect()
}

/// The file that a path leads to.
fn longest(modules: &BTreeSet<Module>, path: &[String]) -> Option<Module> {
    (0..=path.len()).rev().map(|len| path[..len].to_vec()).find(|part| modules.contains(part))
}

struct Uses {
    own: Module,
    named: Vec<Module>,
}

impl Uses {
    fn tree(&mut self, tree: &UseTree, before: &[String]) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.tree(&path.tree, &with(&path.ident)),
            UseTree::Name(name) => self.follow(&with(&name.ident)),
            UseTree::Rename(name) => self.follow(&with(&name.ident)),
            UseTree::Glob(_) => self.follow(before),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(tree, before)),
        }
    }

    fn follow(&mut self, path: &[String]) {
        let mut here = match path.first().map(String::as_str) {
            Some("crate") => Module::new(),
            Some("self" | "super") => self.own.clone(),
            _ => return,
        };
        for part in path {
            match part.as_str() {
                "crate" | "self" => {}
                "super" => drop(here.pop()),
                _ => here.push(part.clone()),
            }
        }
        self.named.push(here);
    }
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !for_tests(&item.attrs) {
            self.tree(&item.tree, &[]);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.follow(&parts);
        visit::visit_path(self, path);
    }
}
