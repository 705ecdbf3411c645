//! Named tuples of Python, built from fields by name; the class defines their order.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

/// A class of the package.
pub struct NamedTuple {
    module: &'static str,
    name: &'static str,
    /// Cached by the first call: the class, `tuple.__new__`, and the index of each field of the class among those given.
    found: PyOnceLock<(Py<PyAny>, Py<PyAny>, Vec<usize>)>,
}

/// A field and its value.
pub type NamedField<'py> = (&'static str, Bound<'py, PyAny>);

impl NamedTuple {
    /// A class of `recede._report`.
    pub const fn of_report(name: &'static str) -> Self {
        NamedTuple::new("recede._report", name)
    }

    /// A class of `recede.reduction._exchange`.
    pub const fn of_exchange(name: &'static str) -> Self {
        NamedTuple::new("recede.reduction._exchange", name)
    }

    /// A class with these names in this module.
    pub const fn new(module: &'static str, name: &'static str) -> Self {
        NamedTuple { module, name, found: PyOnceLock::new() }
    }

    /// A tuple with these fields, whose names must be the same in each call.
    pub fn make<'py>(&self, py: Python<'py>, fields: &[NamedField<'py>]) -> PyResult<Bound<'py, PyAny>> {
        let (class, new, order) = self.found.get_or_try_init(py, || self.find(py, fields))?;
        let values = PyTuple::new(py, order.iter().map(|place| &fields[*place].1))?;
        new.bind(py).call1((class, values))
    }

    fn find(&self, py: Python<'_>, fields: &[NamedField<'_>]) -> PyResult<(Py<PyAny>, Py<PyAny>, Vec<usize>)> {
        let class = py.import(self.module)?.getattr(self.name)?;
        let names: Vec<String> = class.getattr("_fields")?.extract()?;
        let order: Vec<usize> =
            names.iter().filter_map(|name| fields.iter().position(|field| field.0 == name)).collect();
        if order.len() != names.len() || names.len() != fields.len() {
            let given: Vec<&str> = fields.iter().map(|field| field.0).collect();
            return Err(PyTypeError::new_err(format!("{} has the fields {names:?}, not {given:?}", self.name)));
        }
        let tuple: Bound<'_, PyType> = py.get_type::<PyTuple>();
        Ok((class.unbind(), tuple.getattr("__new__")?.unbind(), order))
    }
}

/// Converts a value for a field of a named tuple.
pub fn field_of<'py, T: IntoPyObjectExt<'py>>(py: Python<'py>, value: T) -> PyResult<Bound<'py, PyAny>> {
    value.into_bound_py_any(py)
}

/// A tuple of this class, of fields by name.
macro_rules! named {
    ($class:expr, $py:expr, $($name:ident = $value:expr),+ $(,)?) => {
        $class.make($py, &[$((stringify!($name), $crate::py::named::field_of($py, $value)?)),+])
    };
}
pub(crate) use named;
