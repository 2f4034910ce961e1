//! What happens to files: which are read, and which are written.

use std::fs;

use super::{Folder, TWO_WAYS, program, repair, scripts, stubborn};

#[test]
fn without_a_terminal_nothing_is_approved() {
    for write in [None, Some("--write")] {
        let folder = Folder::with("a.py", TWO_WAYS, "1\n");
        let before = fs::metadata(folder.path("a.py")).unwrap().modified().unwrap();
        let name = folder.name("a.py");
        let done = repair(write.into_iter().chain([name.as_str()]));
        assert_eq!(done.code, Some(3), "{}", done.out);
        assert_eq!(done.err.lines().count(), 2, "{}", done.err);
        assert!(done.err.contains("no terminal") && done.err.contains("nothing was applied"));
        assert!(done.out.contains("needs an approval: line 3, misspelt name"), "{}", done.out);
        assert_eq!(folder.text("a.py"), TWO_WAYS);
        assert_eq!(fs::metadata(folder.path("a.py")).unwrap().modified().unwrap(), before);
    }
}

#[test]
fn an_approval_piped_in_is_none() {
    let folder = Folder::with("a.py", TWO_WAYS, "1\n");
    fs::write(folder.path("yes"), "y\ny\ny\n").unwrap();
    let input = fs::File::open(folder.path("yes")).unwrap();
    let status =
        program().args(["--write", &folder.name("a.py")]).stdin(input).output().unwrap().status;
    assert_eq!(status.code(), Some(3));
    assert_eq!(folder.text("a.py"), TWO_WAYS);
}

#[test]
fn what_runs_needs_no_approval() {
    let folder = Folder::with("a.py", "print(1)\n", "1\n");
    let done = repair(["--json", &folder.name("a.py")]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(done.json()[0]["outcome"], "runs");
    assert_eq!(done.json()[0]["diff"], "");
}

#[test]
fn a_file_is_unchanged_without_write() {
    let folder = Folder::with("a.py", TWO_WAYS, "1\n");
    let done = repair(["--yes", &folder.name("a.py")]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(folder.text("a.py"), TWO_WAYS);
    assert!(done.out.ends_with("no file of yours was changed\n"), "{}", done.out);
}

#[test]
fn only_what_is_fixed_is_written() {
    let folder = Folder::with("a.py", TWO_WAYS, "1\n");
    // One fault is repaired, for the other there is no rule.
    let half = "items = 1\nprint(itmes)\nprint(1 / 0)\n";
    fs::write(folder.path("b.py"), half).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(folder.path("a.py"), fs::Permissions::from_mode(0o750)).unwrap();
    }
    let done = repair(["--yes", "--write", &folder.name("a.py"), &folder.name("b.py")]);
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert_eq!(folder.text("a.py"), TWO_WAYS.replace("itmes", "items"));
    assert_eq!(folder.text("b.py"), half);
    assert!(done.out.contains("+print(items)"), "{}", done.out);
    assert!(done.out.ends_with("1 of 2 run; 2 repairs applied; 1 file of yours was replaced\n"));
    assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), 3, "no temporary file is left");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(folder.path("a.py")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o750);
    }
}

#[test]
fn a_script_that_ships_is_never_written() {
    let path = scripts().join("orders.py");
    let before = fs::read(&path).unwrap();
    let done = repair(["--yes", "--write", &path.display().to_string()]);
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.out.contains("fixed, but not written: it ships with this program"));
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(repair(["--yes", "--write"]).code, Some(0));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn what_cannot_be_read_gets_a_line_and_the_others_are_repaired() {
    let folder = Folder::with("good.py", TWO_WAYS, "1\n");
    fs::write(folder.path("nul.py"), b"print(1)\0").unwrap();
    fs::write(folder.path("latin.py"), b"# caf\xe9\n").unwrap();
    fs::write(folder.path("huge.py"), vec![b'#'; (1 << 20) + 1]).unwrap();
    fs::create_dir(folder.path("folder.py")).unwrap();
    let bad = ["none.py", "nul.py", "latin.py", "huge.py", "folder.py"].map(|it| folder.name(it));
    let good = folder.name("good.py");
    let args = ["--yes", "--json"].into_iter().chain(bad.iter().map(String::as_str));
    let done = repair(args.chain([good.as_str()]));
    assert_eq!(done.code, Some(2));
    let lines: Vec<&str> = done.err.lines().collect();
    assert_eq!(lines.len(), bad.len(), "{}", done.err);
    for (name, (line, words)) in bad.iter().zip(lines.into_iter().zip([
        "no such file",
        "is no text in UTF-8",
        "is no text in UTF-8",
        "is larger than 1 MiB",
        "is a directory or device, not a script",
    ])) {
        assert_eq!(line, format!("repair: {name}: {words}"));
    }
    let outcomes: Vec<_> = done.json().iter().map(|it| it["outcome"].clone()).collect();
    assert_eq!(outcomes[..5], ["unreadable"; 5]);
    assert_eq!(outcomes[5], "fixed");
}

#[cfg(unix)]
#[test]
fn a_file_without_permission_gets_a_line() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::with("a.py", TWO_WAYS, "1\n");
    fs::set_permissions(folder.path("a.py"), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(folder.path("a.py")).is_ok() {
        // For a user who may read everything: a link to itself, which is unreadable.
        fs::remove_file(folder.path("a.py")).unwrap();
        std::os::unix::fs::symlink("a.py", folder.path("a.py")).unwrap();
    }
    let done = repair(["--yes", &folder.name("a.py")]);
    assert_eq!(done.code, Some(2), "{}", done.out);
    assert_eq!(done.err.lines().count(), 1, "{}", done.err);
    assert!(done.err.contains("a.py: cannot be read: "), "{}", done.err);
}

#[test]
fn nothing_of_a_script_reaches_the_terminal_as_a_command() {
    let source = "table = {'\\x1b[2Jname': 1}\nprint(table['\\x1b[2Jnamee'])\n";
    let folder = Folder::with("a.py", source, "1\n");
    let done = repair(["--yes", &folder.name("a.py")]);
    assert!(!done.out.contains('\u{1b}') && !done.err.contains('\u{1b}'), "{:?}", done.out);
    let raising = "raise ValueError('\\x1b[2J')\n";
    fs::write(folder.path("a.py"), raising).unwrap();
    let done = repair(["--yes", &folder.name("a.py"), &stubborn("no_rule.py")]);
    assert_eq!(done.code, Some(1));
    assert!(done.out.contains("\\u{1b}[2J"), "{}", done.out);
}
