//! One string picks the adapter, with its key and base URL from the environment. A process cannot change
//! its own safely, so each case is a process.

use harness::llm::{CallCx, Request, Transcript, user};
use harness_providers::from_env;
use std::process::Command;

/// The test below, which does nothing unless it is started with this variable.
const NAME: &str = "HARNESS_PROVIDERS_TEST_NAME";

const VARIABLES: [&str; 8] = [
    "GEMINI_API_KEY",
    "GEMINI_BASE_URL",
    "OLLAMA_API_KEY",
    "OLLAMA_HOST",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_COMPATIBLE_API_KEY",
    "OPENAI_COMPATIBLE_BASE_URL",
];

/// What becomes of a model of this name in a process with these variables.
fn made(name: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "env::the_other_process", "--nocapture"]).env(NAME, name);
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.split_once("made: "));
    line.unwrap_or_else(|| panic!("{text}")).1.to_owned()
}

#[tokio::test]
async fn the_other_process() {
    let Ok(name) = std::env::var(NAME) else { return };
    match from_env(&name) {
        Err(error) => println!("made: {error}"),
        Ok(model) => {
            let talk = Transcript::from_iter([user("hi")]);
            let request = Request::new(talk.sealed().unwrap());
            let error = model.complete(request, &CallCx::detached()).await.unwrap_err();
            println!("made: {} {:?} {error}", model.id(), error.kind());
        }
    }
}

#[test]
fn a_name_picks_the_adapter() {
    // No server is there, which is another error than that of the vendor's own.
    let url = "http://127.0.0.1:1/v1";
    let openai = [("OPENAI_API_KEY", " sk-canary \n"), ("OPENAI_BASE_URL", url)];
    let other = [("OPENAI_COMPATIBLE_BASE_URL", url)];
    let cases: [(&str, &[(&str, &str)], &str); 8] = [
        ("openai/gpt-x", &openai, "openai/gpt-x Unavailable"),
        ("openai-chat/gpt-x", &openai, "openai/gpt-x Unavailable"),
        ("openai-compatible/org/m-1", &other, "openai-compatible/org/m-1 Unavailable"),
        ("openai/gpt-x", &[], "the environment variable `OPENAI_API_KEY` is not set"),
        ("openai/gpt-x", &[("OPENAI_API_KEY", " ")], "the environment variable `OPENAI_API_KEY`"),
        ("openai-chat/gpt-x", &[], "the environment variable `OPENAI_API_KEY` is not set"),
        (
            "openai-compatible/m-1",
            &[("OPENAI_COMPATIBLE_API_KEY", "sk-canary")],
            "the environment variable `OPENAI_COMPATIBLE_BASE_URL` is not set",
        ),
        ("acme/m-1", &[], "unknown provider `acme` of the model `acme/m-1` (use `anthropic/..`, "),
    ];
    for (name, variables, expected) in cases {
        let made = made(name, variables);
        assert!(made.starts_with(expected), "{name}: {made}");
        assert!(!made.contains("canary"), "{made}");
    }
}

#[cfg(all(feature = "gemini", feature = "ollama"))]
#[test]
fn a_name_picks_a_model_of_google_or_of_a_machine() {
    let google = [("GEMINI_API_KEY", "sk-canary"), ("GEMINI_BASE_URL", "http://127.0.0.1:1")];
    let machine = [("OLLAMA_HOST", "127.0.0.1:1"), ("OLLAMA_API_KEY", "sk-canary")];
    let cases: [(&str, &[(&str, &str)], &str); 4] = [
        ("gemini/gemini-x", &google, "gemini/gemini-x Unavailable"),
        ("gemini/gemini-x", &[], "the environment variable `GEMINI_API_KEY` is not set"),
        ("ollama/org/m:8b", &machine, "ollama/org/m:8b Unavailable"),
        ("ollama/m", &machine[..1], "ollama/m Unavailable"),
    ];
    for (name, variables, expected) in cases {
        let made = made(name, variables);
        assert!(made.starts_with(expected), "{name}: {made}");
        assert!(!made.contains("canary"), "{made}");
    }
}
