//! Section 3.4.2, figure 3-4: how long a mean takes to be steady.

use super::Topic;

pub(super) const TOPIC: Topic = Topic {
    experiments: &[],
    rule: |_, _| None,
    remark: |_| None,
    cells: |_| Vec::new(),
    figures: |_| Ok(Vec::new()),
};
