//! The hand-written program: an object on the bare SDK that journals what a session does.

use std::sync::Arc;

use harness::engine::{Checkpoint, Engine, EngineError, Work};
use restate_sdk::prelude::*;
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// What one invocation of ours journals and keeps, as its bytes.
#[derive(Default)]
pub(super) struct Recorder {
    results: Mutex<Vec<Vec<u8>>>,
}

#[harness::async_trait]
impl Engine for Recorder {
    async fn run(&self, _number: u64, work: Work) -> Result<Vec<u8>, EngineError> {
        let result = work.await;
        self.results.lock().await.push(result.clone());
        Ok(result)
    }
}

impl Recorder {
    /// The object that does the same.
    pub(super) async fn bare(self, kept: &Checkpoint) -> serde_json::Result<MeasureBare> {
        let results = self.results.into_inner();
        let row = serde_json::to_vec(kept.summary())?;
        Ok(MeasureBare { results: Arc::new(results), kept: serde_json::to_vec(kept)?, row })
    }
}

pub(super) struct MeasureBare {
    results: Arc<Vec<Vec<u8>>>,
    kept: Vec<u8>,
    row: Vec<u8>,
}

/// Its name on the server.
pub(super) const NAME: &str = "MeasureBare";

#[restate_sdk::object]
impl MeasureBare {
    #[handler]
    async fn start(
        &self,
        ctx: ObjectContext<'_>,
        _input: Json<Value>,
    ) -> HandlerResult<Json<Value>> {
        let _ = ctx.get::<Vec<u8>>("session").await?;
        for number in 0..self.results.len() {
            let results = Arc::clone(&self.results);
            let result =
                move || async move { Ok(results.get(number).cloned().unwrap_or_default()) };
            let _: Vec<u8> = ctx.run(result).name(number.to_string()).await?;
        }
        ctx.set("session", self.kept.clone());
        ctx.set("row", self.row.clone());
        Ok(Json(json!({ "session": ctx.key(), "phase": "ended", "step": "Say" })))
    }
}
