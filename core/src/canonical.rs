//! Canonical placements: equal devices renumbered by first appearance.

use crate::instance::Id;
use crate::table::Table;
use crate::topology::Groups;

/// Renumber, in each row, the devices of every class by first appearance along `order`.
///
/// `classes[d]` is the class of device d, less than the number of devices; devices of one class are
/// interchangeable. The k-th device of a class to appear becomes the class's k-th device.
#[must_use]
pub fn canonical(placements: &Table<Id>, order: &[Id], classes: &[Id]) -> Table<Id> {
    let members = Groups::new(classes, classes.len());
    let mut result = Table::filled(0, placements.rows(), placements.columns());
    let mut name = vec![None; classes.len()];
    let mut seen = vec![0; classes.len()];
    for i in 0..placements.rows() {
        name.fill(None);
        seen.fill(0);
        for &v in order {
            let d = placements[(i, v as usize)] as usize;
            let class = classes[d] as usize;
            result[(i, v as usize)] = *name[d].get_or_insert_with(|| {
                seen[class] += 1;
                members.of(class)[seen[class] - 1]
            });
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_devices_are_named_as_they_appear() {
        let placements = Table::new(vec![3, 1, 3, 2, 0, 1], 2, 3);
        let found = canonical(&placements, &[2, 1, 0], &[0, 1, 0, 1]);
        assert_eq!(found.cells(), [1, 3, 1, 2, 0, 1]);
    }
}
