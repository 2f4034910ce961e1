//! Makes a program equal to another with as few operations as possible.
use super::{Program, ProgramError};

impl Program {
    /// Makes the steps and inputs those of `other`. Equal steps keep their versions. Use it to apply the
    /// edits of a script to a stored program.
    ///
    /// ```
    /// use harness_esg::Program;
    ///
    /// let mut kept = Program::from_script("# %% a\nx = 1\n# %% b\ny = x")?;
    /// let edited = Program::from_script("# %% a\nx = 1\n# %% b\ny = x + 1")?;
    /// let before = kept.mark();
    /// kept.follow(&edited)?;
    /// assert_eq!(kept.operations(before).len(), 1);
    /// # Ok::<(), harness_esg::ProgramError>(())
    /// ```
    ///
    /// # Errors
    /// None that `other` did not have when it was made.
    pub fn follow(&mut self, other: &Self) -> Result<(), ProgramError> {
        let gone: Vec<_> = self
            .steps()
            .map(|step| step.id.clone())
            .filter(|id| other.position(id).is_none())
            .collect();
        for id in gone {
            self.remove(&id)?;
        }
        for step in other.steps() {
            match self.step(&step.id) {
                Err(_) => {
                    self.push(&step.id, &step.source)?;
                }
                Ok(ours) if ours.source != step.source => {
                    self.replace(&step.id, &step.source)?;
                }
                Ok(_) => {}
            }
        }
        for (at, step) in other.steps().enumerate() {
            let there = self.steps().nth(at).map(|ours| ours.id.clone());
            if let Some(there) = there.filter(|there| *there != step.id) {
                self.move_before(&step.id, &there)?;
            }
        }
        for input in other.inputs() {
            if self.inputs().all(|ours| ours.name != input.name || ours.json != input.json) {
                self.input_json(&input.name, &input.json)?;
            }
        }
        Ok(())
    }
}
