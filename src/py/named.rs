//! Named tuples of Python, built from fields by name; the class, which stands in Python, defines their order.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

/// A class of the package.
pub(super) struct NamedTuple {
    /// Its module and its name, with a dot between.
    path: &'static str,
    /// Cached by the first call: the class, `tuple.__new__`, and the index of each field of the class among those given.
    found: PyOnceLock<(Py<PyAny>, Py<PyAny>, Vec<usize>)>,
}

/// A field and its value.
pub(super) type NamedField<'py> = (&'static str, Bound<'py, PyAny>);

impl NamedTuple {
    pub(super) const fn new(path: &'static str) -> Self {
        NamedTuple { path, found: PyOnceLock::new() }
    }

    /// A tuple with these fields, whose names must be the same in each call.
    pub(super) fn make<'py>(&self, py: Python<'py>, fields: &[NamedField<'py>]) -> PyResult<Bound<'py, PyAny>> {
        let (class, new, order) = self.found.get_or_try_init(py, || self.find(py, fields))?;
        let values = PyTuple::new(py, order.iter().map(|place| &fields[*place].1))?;
        new.bind(py).call1((class, values))
    }

    fn find(&self, py: Python<'_>, fields: &[NamedField<'_>]) -> PyResult<(Py<PyAny>, Py<PyAny>, Vec<usize>)> {
        let (module, name) = self.path.rsplit_once('.').unwrap_or(("builtins", self.path));
        let class = py.import(module)?.getattr(name)?;
        let names: Vec<String> = class.getattr("_fields")?.extract()?;
        let order: Vec<usize> =
            names.iter().filter_map(|name| fields.iter().position(|field| field.0 == name)).collect();
        if order.len() != names.len() || names.len() != fields.len() {
            let given: Vec<&str> = fields.iter().map(|field| field.0).collect();
            return Err(PyTypeError::new_err(format!("{name} has the fields {names:?}, not {given:?}")));
        }
        let tuple: Bound<'_, PyType> = py.get_type::<PyTuple>();
        Ok((class.unbind(), tuple.getattr("__new__")?.unbind(), order))
    }
}

/// Converts a value for a field of a named tuple.
pub(super) fn field_of<'py, T: IntoPyObjectExt<'py>>(py: Python<'py>, value: T) -> PyResult<Bound<'py, PyAny>> {
    value.into_bound_py_any(py)
}

/// Fields by name; a variable of the same name needs no value.
macro_rules! fields {
    ($py:expr, $($name:ident $(= $value:expr)?),+ $(,)?) => {{
        use $crate::py::named::{field_of, fields};
        [$((stringify!($name), field_of($py, fields!(@ $name $(= $value)?))?)),+]
    }};
    (@ $name:ident = $value:expr) => { $value };
    (@ $name:ident) => { $name };
}

/// A tuple of the class at this path, of fields by name.
macro_rules! named {
    ($path:literal, $py:expr, $($field:tt)+) => {{
        use $crate::py::named::{NamedTuple, fields};
        static CLASS: NamedTuple = NamedTuple::new($path);
        CLASS.make($py, &fields!($py, $($field)+))
    }};
}
pub(crate) use {fields, named};
