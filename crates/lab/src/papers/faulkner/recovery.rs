//! Section 4.1.2, figures 4-5 to 4-7: what happens when a blockage ends.

use super::Topic;

pub(super) const TOPIC: Topic = Topic {
    experiments: &[],
    rule: |_, _| None,
    remark: |_| None,
    cells: |_| Vec::new(),
    figures: |_| Ok(Vec::new()),
};
