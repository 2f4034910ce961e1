//! A real browser.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::json;

/// No window is narrower: what is, is a telephone.
const NARROWEST: u32 = 500;

/// A driver of browsers, which ends with this value.
pub(crate) struct Driver {
    child: Child,
    url: String,
}

impl Driver {
    pub(crate) fn start() -> Option<Self> {
        let child = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).spawn();
        let mut child = match child {
            Ok(child) => child,
            Err(error) if std::env::var_os("HARNESS_CHECK").is_none() => {
                eprintln!("skipped: chromedriver does not start: {error}");
                return None;
            }
            Err(error) => panic!("chromedriver does not start: {error}"),
        };
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.map_while(Result::ok).find_map(|line| {
            let rest = line.split_once("started successfully on port ")?.1;
            rest.trim_end_matches('.').parse::<u16>().ok()
        });
        let url = format!("http://127.0.0.1:{}", port.unwrap());
        Some(Self { child, url })
    }

    pub(crate) async fn browser(&self, width: u32, dark: bool) -> Client {
        let mut args =
            vec!["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
        let size = format!("--window-size={width},1000");
        args.push(&size);
        if dark {
            args.push("--blink-settings=preferredColorScheme=0");
        }
        let mut chrome = json!({"args": args});
        if width < NARROWEST {
            // High enough for a picture of most pages: the size of a telephone does not change.
            let metrics = json!({"width": width, "height": 3_000, "pixelRatio": 1.0, "mobile": true, "touch": true});
            chrome["mobileEmulation"] = json!({"deviceMetrics": metrics});
        }
        let options = json!({"goog:chromeOptions": chrome});
        let options = options.as_object().unwrap().clone();
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(options).connect(&self.url).await.unwrap()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pictures() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let workspace = above.find(|folder| folder.join("Cargo.lock").is_file()).unwrap();
    let beside = || workspace.join("target");
    let folder = target.unwrap_or_else(beside).join("inspector");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A picture of the whole page.
pub(crate) async fn picture(browser: &Client, name: &str) {
    let height = browser.execute("return document.documentElement.scrollHeight", vec![]).await;
    let height = height.unwrap().as_u64().unwrap().clamp(600, 4_000);
    let (width, _) = browser.get_window_size().await.unwrap();
    browser
        .set_window_size(u32::try_from(width).unwrap(), u32::try_from(height).unwrap() + 140)
        .await
        .unwrap();
    let png = browser.screenshot().await.unwrap();
    std::fs::write(pictures().join(format!("{name}.png")), png).unwrap();
    browser.set_window_size(u32::try_from(width).unwrap(), 1_000).await.unwrap();
}

pub(crate) async fn text(browser: &Client, css: &str) -> String {
    browser.wait().for_element(Locator::Css(css)).await.unwrap().text().await.unwrap()
}
