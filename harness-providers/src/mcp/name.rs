//! Names of tools that every vendor accepts.

use std::collections::HashSet;

/// The greatest length of a tool's name at vendors.
const LONGEST: usize = 64;

/// The greatest length of a server's name, which leaves room for the tool's.
const LONGEST_SERVER: usize = 24;

/// Whether a name of a server is legal. Without `_`, which separates it from the name of the tool, and
/// with none of `0-9` and `-` first, as some vendors want it.
pub(super) fn is_legal_server(name: &str) -> bool {
    (1..=LONGEST_SERVER).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The name for models of a server's tool: `server_tool`. One that would be too long or has other
/// characters is changed and gets a hash of the original, so that it is the same in every process and
/// does not depend on the other tools.
fn legal(server: &str, tool: &str) -> String {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name = format!("{server}_{tool}");
    if !tool.is_empty() && tool.chars().all(is_legal) && name.len() <= LONGEST {
        return name;
    }
    hashed(server, tool)
}

fn hashed(server: &str, tool: &str) -> String {
    let digest = hmac_sha256::Hash::hash(format!("{server}\0{tool}").as_bytes());
    let hash: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let room = LONGEST - hash.len() - 1;
    let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let clean = tool.chars().map(|c| if is_legal(c) { c } else { '_' });
    let name: String = server.chars().chain(['_']).chain(clean).take(room).collect();
    format!("{name}_{hash}")
}

/// Gives names, each once.
#[derive(Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    /// The name for models, or `None` if the server has listed the tool before.
    pub(super) fn give(&mut self, server: &str, tool: &str) -> Option<String> {
        // A tool may have the name that another one gets from its hash.
        [legal(server, tool), hashed(server, tool)]
            .into_iter()
            .find(|name| self.0.insert(name.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_legal_and_say_where_they_are_from() {
        for (tool, expected) in [
            ("read_file", "files_read_file"),
            ("a-b", "files_a-b"),
            ("repo/read.file", "files_repo_read_file_9f19c124"),
            ("żółw", "files____w_9c16259e"),
            ("", "files__a2df60d0"),
        ] {
            let name = Names::default().give("files", tool).unwrap();
            assert_eq!(name, expected);
        }
        let long = Names::default().give("files", &"x".repeat(200)).unwrap();
        assert_eq!(long.len(), LONGEST);
    }

    #[test]
    fn legal_names_of_servers_are_known() {
        for name in ["a", "git-hub", "A1", &"x".repeat(24)] {
            assert!(is_legal_server(name), "{name}");
        }
        for name in ["", "1a", "-a", "git_hub", "git hub", "ż", &"x".repeat(25)] {
            assert!(!is_legal_server(name), "{name}");
        }
    }

    #[test]
    fn a_tool_cannot_take_the_name_of_another() {
        let mut names = Names::default();
        let first = names.give("a", "x y").unwrap();
        let forged = first.strip_prefix("a_").unwrap();
        let second = names.give("a", forged).unwrap();
        assert_ne!(first, second);
        assert_eq!(names.give("a", "b"), Some("a_b".to_owned()));
        assert_eq!(names.give("a", "b").as_deref(), Some(&*hashed("a", "b")));
        assert_eq!(names.give("a", "b"), None);
    }

    proptest! {
        #[test]
        fn every_name_is_legal_unique_and_always_the_same(
            tools in proptest::collection::hash_set(("[a-z]{1,3}", "(?s).{0,80}|[a-z_]{1,3}"), 1..30),
        ) {
            let mut names = Names::default();
            let mut given = HashSet::new();
            for (server, tool) in &tools {
                let name = names.give(server, tool).unwrap();
                prop_assert!((1..=LONGEST).contains(&name.len()), "{}", name);
                prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
                prop_assert_eq!(&name, &legal(server, tool));
                prop_assert!(given.insert(name));
            }
        }
    }
}
