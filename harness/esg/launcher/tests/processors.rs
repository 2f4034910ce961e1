//! The lists of system calls on a processor that the tests do not run on: a call without a number there
//! would not compile, and a wrong number would be another call.
#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The sources that name calls.
const SOURCES: [&str; 2] =
    [include_str!("../src/linux/calls.rs"), include_str!("../src/linux/filters.rs")];

/// Where the kernel numbers the calls of every newer processor.
const KERNEL: &str = "/usr/include/asm-generic/unistd.h";

/// The calls of this source on a processor, without those of items for another one.
fn calls(source: &str, processor: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_elsewhere = false;
    // An attribute holds for the item that begins after it.
    for item in source.split("\n#[cfg(").flat_map(|part| part.split_inclusive(";\n")) {
        if let Some(rest) = item.strip_prefix("target_arch = \"") {
            is_elsewhere = !rest.starts_with(processor);
        }
        if !is_elsewhere {
            let words = item.split(|one: char| one != '_' && !one.is_ascii_alphanumeric());
            found.extend(words.filter(|word| word.starts_with("SYS_")).map(str::to_owned));
        }
        is_elsewhere &= !item.ends_with(";\n");
    }
    found
}

/// The folder of the crate `libc` that this crate is compiled with.
fn libc() -> PathBuf {
    // Packages of other platforms may not be on this machine.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let listed = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--filter-platform", &platform])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let packages = listed["packages"].as_array().unwrap();
    let is_libc = |package: &&serde_json::Value| {
        package["name"] == "libc" && package["version"].as_str().unwrap().starts_with("0.2.")
    };
    let manifest = packages.iter().find(is_libc).unwrap()["manifest_path"].as_str().unwrap();
    Path::new(manifest).parent().unwrap().to_owned()
}

/// The numbers that `libc` defines in these files.
fn numbers(files: &[&str]) -> BTreeMap<String, u32> {
    let folder = libc().join("src/unix/linux_like/linux");
    let text: String =
        files.iter().map(|file| std::fs::read_to_string(folder.join(file)).unwrap()).collect();
    let constants = text.lines().filter_map(|line| {
        let (name, number) = line.strip_prefix("pub const ")?.split_once(": c_long = ")?;
        Some((name.to_owned(), number.strip_suffix(';')?.parse().ok()?))
    });
    constants.collect()
}

/// The numbers in the header of the kernel. Of a line for 32 bits and one for 64, the one for 64 counts.
fn of_the_kernel() -> BTreeMap<String, u32> {
    let text = std::fs::read_to_string(KERNEL).unwrap();
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if words.next() != Some("#define") {
            continue;
        }
        let (Some(name), Some(number)) = (words.next(), words.next()) else { continue };
        let name = name.strip_prefix("__NR3264_").or_else(|| name.strip_prefix("__NR_"));
        if let (Some(name), Ok(number)) = (name, number.parse()) {
            found.insert(name.to_owned(), number);
        }
    }
    found
}

#[test]
fn every_call_has_the_number_on_aarch64_that_the_kernel_gives_it() {
    let named: BTreeSet<String> =
        SOURCES.iter().flat_map(|source| calls(source, "aarch64")).collect();
    assert!(named.len() > 250 && !named.contains("SYS_fork") && named.contains("SYS_renameat"));
    let kernel = of_the_kernel();
    for files in [
        ["gnu/b64/aarch64/mod.rs", "gnu/b64/aarch64/lp64.rs"].as_slice(),
        &["musl/b64/aarch64/mod.rs"],
    ] {
        let numbers = numbers(files);
        for call in &named {
            let number = numbers.get(call).unwrap_or_else(|| panic!("{call} is not in {files:?}"));
            let name = match call.trim_start_matches("SYS_") {
                "newfstatat" => "fstatat",
                same => same,
            };
            assert_eq!(kernel.get(name), Some(number), "{call} in {files:?}");
        }
    }
}

#[test]
fn what_is_for_one_processor_is_found_there_alone() {
    let (here, there) = (calls(SOURCES[0], "x86_64"), calls(SOURCES[0], "aarch64"));
    let only: Vec<_> = here.difference(&there).collect();
    assert!(only.iter().any(|call| *call == "SYS_vfork") && only.len() > 30, "{only:?}");
    assert!(there.is_subset(&here), "{:?}", there.difference(&here));
}
