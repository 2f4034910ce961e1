//! Whether a path is below another, as text.

/// Whether a path is below another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Under {
    Yes,
    No,
    /// It depends on what the text does not say: the system, or the working directory.
    Unclear,
}

/// Whether `path` is `root` or below it. `.`, `..` and repeated slashes are resolved.
pub(super) fn under(root: &str, path: &str) -> Under {
    let (Some(root), Some(path)) = (Plain::of(root), Plain::of(path)) else {
        return Under::Unclear;
    };
    match root.absolute == path.absolute {
        false => Under::Unclear,
        true if path.parts.starts_with(&root.parts) => Under::Yes,
        true => Under::No,
    }
}

/// A path without `.` and `..`.
struct Plain<'a> {
    absolute: bool,
    parts: Vec<&'a str>,
}

impl<'a> Plain<'a> {
    /// `None` if it cannot be resolved without a file system.
    fn of(path: &'a str) -> Option<Self> {
        // A backslash separates on some systems; `~` and a drive are a directory to some tools.
        let strange = |c: char| c == '\\' || c.is_control();
        let drive = path.as_bytes().get(1) == Some(&b':');
        if path.is_empty() || path.contains(strange) || path.starts_with('~') || drive {
            return None;
        }
        let absolute = path.starts_with('/');
        let mut parts = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." if parts.pop().is_some() || absolute => {}
                ".." => return None,
                part => parts.push(part),
            }
        }
        Some(Self { absolute, parts })
    }
}
