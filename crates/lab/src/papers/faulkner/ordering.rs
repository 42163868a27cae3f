//! Section 4.3.2, figure 4-17: delivery in order or not.

use super::Topic;

pub(super) const TOPIC: Topic = Topic {
    experiments: &[],
    rule: |_, _| None,
    remark: |_| None,
    cells: |_| Vec::new(),
    figures: |_| Ok(Vec::new()),
};
