//! What a file names of its own crate.

use std::path::Path;

use syn::visit::{self, Visit};
use syn::{Attribute, ItemMod, ItemUse, UseTree};

/// What `text`, the file at `path`, names that it may not.
pub(super) fn faults(layers: &[&[&str]], path: &Path, text: &str) -> Vec<String> {
    let module = module_of(path);
    let own = module.first().map_or("lib", String::as_str).to_owned();
    let shown = path.display();
    let row = |name: &str| layers.iter().position(|row| row.contains(&name));
    let Some(at) = row(&own) else {
        return vec![format!("{shown}: `{own}` has no place in LAYERS")];
    };
    if at + 1 == layers.len() {
        return Vec::new();
    }
    let mut named: Vec<String> =
        paths(module, text).into_iter().filter_map(|path| path.into_iter().next()).collect();
    named.sort();
    named.dedup();
    let fault = |name: &String| match row(name) {
        _ if *name == own => None,
        None => Some(format!("names `{name}` of the facade (name the module it is in)")),
        Some(there) if there > at => Some(format!("names `{name}`, which is above it")),
        Some(there) if there == at => Some(format!("names `{name}`, which is beside it")),
        Some(_) => None,
    };
    named.iter().filter_map(fault).map(|fault| format!("{shown}: `{own}` {fault}")).collect()
}

/// Everything that the file of a module names in its own crate, by paths from the crate's root. Paths
/// that lead from a module down to a child of it are left out.
pub(super) fn paths(module: Vec<String>, text: &str) -> Vec<Vec<String>> {
    let mut seen = Names { module, named: Vec::new() };
    seen.visit_file(&syn::parse_file(text).unwrap());
    seen.named
}

/// `graph/validate.rs` is `["graph", "validate"]`.
pub(super) fn module_of(path: &Path) -> Vec<String> {
    let stem = path.with_extension("");
    let parts = stem.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    parts.filter(|part| part != "mod" && part != "lib").collect()
}

pub(super) fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

struct Names {
    module: Vec<String>,
    named: Vec<Vec<String>>,
}

impl Names {
    /// Follows a path to what it names, from the root of the crate.
    fn follow(&mut self, path: &[String]) {
        let mut here = match path.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self" | "super") => self.module.clone(),
            _ => return,
        };
        for part in path {
            match part.as_str() {
                "crate" | "self" => {}
                "super" => {
                    here.pop();
                }
                _ => here.push(part.clone()),
            }
        }
        if !here.is_empty() {
            self.named.push(here);
        }
    }

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

    /// Macros hide paths from the parser: their text is split into words. Strings, and with them
    /// documentation, are left out.
    fn words(&mut self, tokens: &str) {
        let tokens = tokens.replace("\\\\", "").replace("\\\"", "");
        let code: Vec<&str> = tokens.split('"').step_by(2).collect();
        let text = code.join(" ").replace("::", " :: ");
        let words: Vec<&str> = text
            .split(|char: char| !(char.is_alphanumeric() || char == '_' || char == ':'))
            .filter(|word| !word.is_empty())
            .collect();
        for start in 0..words.len() {
            if matches!(words[start], "crate" | "super") && (start == 0 || words[start - 1] != "::")
            {
                let mut path = vec![words[start].to_owned()];
                let mut at = start + 1;
                while words.get(at) == Some(&"::") && at + 1 < words.len() {
                    path.push(words[at + 1].to_owned());
                    at += 2;
                }
                self.follow(&path);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.tree(&item.tree, &[]);
    }

    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    // `pub(crate)` names nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        self.follow(&parts);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.words(&item.tokens.to_string());
        visit::visit_macro(self, item);
    }
}
