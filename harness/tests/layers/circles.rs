//! Which file needs which: a name is followed through the modules that only pass it on to the file
//! that declares it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use syn::{Item, UseTree};

use super::imports::{for_tests, module_of, paths};

type Module = Vec<String>;

/// The files of a crate, and which of them each needs.
pub(super) struct Files {
    /// A parent and what is inside it need each other by their nature, and are left out.
    needs: BTreeMap<Module, BTreeSet<Module>>,
    /// These are not left out.
    needs_with_family: BTreeMap<Module, BTreeSet<Module>>,
}

/// What a module passes on.
#[derive(Default)]
struct Exports {
    /// A name, and where it leads.
    names: Vec<(String, Module)>,
    /// Modules all of which is passed on.
    globs: Vec<Module>,
    /// Whether the module also declares something.
    declares: bool,
}

impl Files {
    pub(super) fn of(files: &[(PathBuf, String)]) -> Self {
        let modules: BTreeSet<Module> = files.iter().map(|(path, _)| module_of(path)).collect();
        let exports: BTreeMap<Module, Exports> = files
            .iter()
            .map(|(path, text)| {
                let module = module_of(path);
                let exports = exports(&module, text, &modules);
                (module, exports)
            })
            .collect();
        let needs_with_family: BTreeMap<Module, BTreeSet<Module>> = files
            .iter()
            .map(|(path, text)| {
                let module = module_of(path);
                let mut needed = BTreeSet::new();
                // A `use` may name a module inside without saying that it is inside.
                let used = exports[&module].names.iter().map(|(_, target)| target.clone());
                for path in paths(module.clone(), text).into_iter().chain(used) {
                    let mut passed = Vec::new();
                    needed.extend(declared_in(&path, &modules, &exports, &mut passed));
                    // A file that only passes names on is not needed for them.
                    needed.extend(passed.into_iter().filter(|by| exports[by].declares));
                }
                needed.remove(&module);
                (module, needed)
            })
            .collect();
        let mut needs = needs_with_family.clone();
        for (module, needed) in &mut needs {
            needed.retain(|other| !other.starts_with(module) && !module.starts_with(other));
        }
        Self { needs, needs_with_family }
    }

    /// The circles that lead through a parent and its children to a file outside: each with the
    /// files in it.
    pub(super) fn circles_beyond_a_family(&self) -> Vec<String> {
        let reached: BTreeMap<&Module, BTreeSet<&Module>> =
            self.needs_with_family.keys().map(|module| (module, self.reached(module))).collect();
        let mut circles = BTreeSet::new();
        for (module, others) in &reached {
            let back =
                |other: &&&Module| reached.get(**other).is_some_and(|it| it.contains(module));
            let circle: BTreeSet<&Module> = others.iter().filter(back).copied().collect();
            let is_family = circle
                .iter()
                .any(|parent| circle.iter().all(|child| child.starts_with(parent.as_slice())));
            if !circle.is_empty() && !is_family {
                circles.insert(circle);
            }
        }
        let names = |circle: BTreeSet<&Module>| {
            let names: Vec<String> = circle.into_iter().map(|module| module.join("::")).collect();
            format!("a circle of {}", names.join(", "))
        };
        circles.into_iter().map(names).collect()
    }

    /// What a file needs, and what that needs, and so on.
    fn reached<'a>(&'a self, start: &'a Module) -> BTreeSet<&'a Module> {
        let mut reached = BTreeSet::new();
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            let needed = self.needs_with_family.get(at).into_iter().flatten();
            open.extend(needed.filter(|next| reached.insert(*next)));
        }
        reached
    }

    /// The circles: one of each file that needs itself by way of others.
    pub(super) fn circles(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let mut circles = Vec::new();
        for module in self.needs.keys() {
            let Some(circle) = self.circle(module) else { continue };
            let members: BTreeSet<Module> = circle.iter().cloned().collect();
            if seen.insert(members) {
                let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
                circles.push(format!("{} -> {}", names.join(" -> "), names[0]));
            }
        }
        circles
    }

    /// The shortest way from a file to itself.
    fn circle(&self, start: &Module) -> Option<Vec<Module>> {
        let mut before: BTreeMap<&Module, &Module> = BTreeMap::new();
        let mut open = VecDeque::from([start]);
        while let Some(at) = open.pop_front() {
            for next in self.needs.get(at).into_iter().flatten() {
                if next == start {
                    let mut way = vec![at.clone()];
                    let mut here = at;
                    while let Some(previous) = before.get(here) {
                        way.push((*previous).clone());
                        here = previous;
                    }
                    way.reverse();
                    return Some(way);
                }
                if !before.contains_key(next) {
                    before.insert(next, at);
                    open.push_back(next);
                }
            }
        }
        None
    }

    /// What is wrong with the files of a room, which stand in rows from the bottom: a file needs
    /// only those of the rows below its own.
    pub(super) fn faults(&self, room: &str, rows: &[&[&str]]) -> Vec<String> {
        let inside = |module: &Module| match &module[..] {
            [first, file @ ..] if first == room && !file.is_empty() => Some(file.join("::")),
            _ => None,
        };
        let row = |file: &str| rows.iter().position(|row| row.contains(&file));
        let files: BTreeSet<String> = self.needs.keys().filter_map(inside).collect();
        let mut faults: Vec<String> = rows
            .concat()
            .iter()
            .filter(|file| !files.contains(**file))
            .map(|file| format!("{room}: there is no `{file}`"))
            .collect();
        for (module, needed) in &self.needs {
            let Some(file) = inside(module) else { continue };
            let Some(at) = row(&file) else {
                faults.push(format!("{room}: `{file}` has no place in its room"));
                continue;
            };
            for other in needed.iter().filter_map(inside).filter(|other| *other != file) {
                if row(&other).is_some_and(|there| there >= at) {
                    faults.push(format!("{room}: `{file}` names `{other}`, which is not below it"));
                }
            }
        }
        faults
    }
}

/// The file that declares what a path names; `passed` gets those that pass the name on.
fn declared_in(
    path: &[String],
    modules: &BTreeSet<Module>,
    exports: &BTreeMap<Module, Exports>,
    passed: &mut Vec<Module>,
) -> Option<Module> {
    let known = (0..=path.len()).rev().find(|length| modules.contains(&path[..*length]))?;
    let module = path[..known].to_vec();
    let Some(name) = path.get(known) else { return Some(module) };
    if passed.len() > 16 {
        return Some(module);
    }
    let own = exports.get(&module)?;
    if let Some((_, target)) = own.names.iter().find(|(exported, _)| exported == name) {
        let rest = [&target[..], &path[known + 1..]].concat();
        passed.push(module);
        return declared_in(&rest, modules, exports, passed);
    }
    // What a module passes on as a whole is only searched for names that it passes on itself.
    let glob = own.globs.iter().find(|glob| {
        let at = exports.get(*glob).into_iter();
        at.flat_map(|at| &at.names).any(|(exported, _)| exported == name)
    });
    match glob {
        Some(glob) => {
            passed.push(module);
            let rest = [&glob[..], std::slice::from_ref(name)].concat();
            declared_in(&rest, modules, exports, passed)
        }
        None => Some(module),
    }
}

fn exports(module: &Module, text: &str, modules: &BTreeSet<Module>) -> Exports {
    let mut exports = Exports::default();
    for item in syn::parse_file(text).unwrap().items {
        match item {
            Item::Use(item) if !for_tests(&item.attrs) => {
                tree(module, &item.tree, &[], modules, &mut exports);
            }
            Item::Use(_) | Item::Mod(_) => {}
            _ => exports.declares = true,
        }
    }
    exports
}

fn tree(
    module: &Module,
    tree_of: &UseTree,
    before: &[String],
    modules: &BTreeSet<Module>,
    exports: &mut Exports,
) {
    let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
    match tree_of {
        UseTree::Path(path) => tree(module, &path.tree, &with(&path.ident), modules, exports),
        UseTree::Name(name) => {
            if let Some(target) = absolute(module, &with(&name.ident), modules) {
                exports.names.push((name.ident.to_string(), target));
            }
        }
        UseTree::Rename(name) => {
            if let Some(target) = absolute(module, &with(&name.ident), modules) {
                exports.names.push((name.rename.to_string(), target));
            }
        }
        UseTree::Glob(_) => exports.globs.extend(absolute(module, before, modules)),
        UseTree::Group(group) => {
            group.items.iter().for_each(|part| tree(module, part, before, modules, exports));
        }
    }
}

/// A path of a `use` from the root of the crate; `None` if it leads to another crate.
fn absolute(module: &Module, path: &[String], modules: &BTreeSet<Module>) -> Option<Module> {
    let mut here = match path.first().map(String::as_str)? {
        "crate" => Vec::new(),
        "self" | "super" => module.clone(),
        child => {
            let inside = [&module[..], &[child.to_owned()]].concat();
            modules.contains(&inside).then(|| module.clone())?
        }
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
    Some(here)
}

/// How many lines each room has, without its tests.
pub(super) fn lines(files: &[(PathBuf, String)]) -> BTreeMap<String, usize> {
    let mut rooms = BTreeMap::new();
    for (path, text) in files {
        let room = module_of(Path::new(path)).into_iter().next().unwrap_or_default();
        *rooms.entry(room).or_default() += text.lines().count();
    }
    rooms
}
