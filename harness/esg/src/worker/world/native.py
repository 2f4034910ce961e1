"""Packages that open files without Python, so no event says which.

A step that names such a function may have read and written every file in scratch. Files elsewhere that
it reads are external work: they are not compared.
"""

_FUNCTIONS = {
    "polars": "read_avro read_csv read_csv_batched read_database read_delta read_excel read_ipc read_json read_ndjson "
    "read_parquet scan_csv scan_delta scan_iceberg scan_ipc scan_ndjson scan_parquet sink_csv sink_ipc sink_ndjson "
    "sink_parquet write_avro write_csv write_delta write_excel write_ipc write_json write_ndjson write_parquet "
    "collect collect_all collect_async fetch",
    "pyarrow": "LocalFileSystem OSFile ParquetDataset ParquetFile ParquetWriter create_memory_map dataset memory_map "
    "open_csv open_file open_stream read_csv read_feather read_json read_metadata read_pandas read_schema read_table "
    "write_csv write_dataset write_feather write_metadata write_table write_to_dataset new_file new_stream",
    "pandas": "read_feather read_hdf read_orc read_parquet to_feather to_hdf to_orc to_parquet",
    "h5py": "File",
    "tables": "open_file",
    "netCDF4": "Dataset MFDataset",
    "xarray": "load_dataarray load_dataset open_dataarray open_dataset open_mfdataset open_zarr to_netcdf to_zarr",
    "duckdb": "connect execute query read_csv read_json read_parquet sql",
    "cv2": "VideoCapture VideoWriter imread imreadmulti imwrite imwritemulti",
    "lxml": "iterparse parse write",
    "geopandas": "read_file to_file read_parquet to_parquet",
    "fiona": "open",
    "rasterio": "open",
    "soundfile": "SoundFile read write",
    "torch": "load save",
    "xgboost": "DMatrix dump_model load_model save_model",
    "lightgbm": "Booster Dataset save_model",
}
FUNCTIONS = {package: frozenset(names.split()) for package, names in _FUNCTIONS.items()}


def opens(tops, names):
    """Whether a step that uses these packages and names may open files in that way."""
    return any(not found.isdisjoint(names) for package, found in FUNCTIONS.items() if package in tops)
