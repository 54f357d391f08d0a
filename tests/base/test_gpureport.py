"""The reader of nvidia-smi's report: every generation of drivers, and whatever else is printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.base.gpureport import parse_gpu_report, uncorrectable_errors

REPORT = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
  <driver_version>535.1</driver_version>
  <gpu id="00000000:10:00.0">
    <product_name>Test &amp; Co</product_name>
    <mig_mode/>
    <ecc_errors>
      <volatile>{volatile}</volatile>
      <aggregate><dram_uncorrectable>9</dram_uncorrectable></aggregate>
    </ecc_errors>
  </gpu>
  <gpu id="00000000:11:00.0"></gpu>
</nvidia_smi_log>
"""


@pytest.mark.parametrize(
    ("volatile", "errors"),
    [
        ("<single_bit><total>7</total></single_bit><double_bit><total>3</total></double_bit>", 3),
        ("<sram_uncorrectable>1</sram_uncorrectable><dram_uncorrectable>2</dram_uncorrectable>", 3),
        ("<sram_uncorrectable_parity>4</sram_uncorrectable_parity>", 4),
        ("<dram_correctable>5</dram_correctable><dram_uncorrectable>N/A</dram_uncorrectable>", 0),
        ("", 0),
    ],
)
def test_errors_of_every_generation_of_drivers_are_counted(volatile: str, errors: int) -> None:
    """Before 450, from 450 on, from 545 on, and where the driver counts none."""
    first, second = parse_gpu_report(REPORT.format(volatile=volatile)).all("gpu")
    assert uncorrectable_errors(first, "volatile") == errors
    assert uncorrectable_errors(first, "aggregate") == 9
    assert uncorrectable_errors(second, "volatile") == 0


def test_values_are_found_by_path() -> None:
    """Text at the end of a path, the attributes of a tag, and nothing where nothing is."""
    log = parse_gpu_report(REPORT)
    assert log.value("driver_version") == "535.1"
    assert log.value("gpu/none") == ""
    assert log.all("gpu")[1].attributes == ' id="00000000:11:00.0"'
    assert "9" in list(log.texts())


@pytest.mark.parametrize(
    ("report", "says"),
    [
        ("", "no report in XML"),
        ("<nvidia_smi_log>", "no whole report"),
        ("<nvidia_smi_log><!ENTITY a 'b'></nvidia_smi_log>", "entities"),
        ("<nvidia_smi_log></gpu></nvidia_smi_log>", "closes what is not open"),
        ("<nvidia_smi_log><gpu></nvidia_smi_log>", "closes what is not open"),
        (f"<nvidia_smi_log>{'<a>' * 100}</nvidia_smi_log>", "too deep"),
    ],
)
def test_what_is_no_report_is_refused(report: str, says: str) -> None:
    """An output that is damaged or hostile is a ValueError with its reason."""
    with pytest.raises(ValueError, match=says):
        parse_gpu_report(report)


@given(st.text(alphabet='<>/?!ab \n"=-&;', max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes the reader fail otherwise."""
    for report in (text, f"<nvidia_smi_log>{text}</nvidia_smi_log>"):
        try:
            assert parse_gpu_report(report).name == "nvidia_smi_log"
        except ValueError as e:
            assert str(e)


@given(st.integers(0, len(REPORT)), st.integers(0, 200))
def test_a_report_with_a_hole_is_read_or_refused(at: int, size: int) -> None:
    """A piece is taken out."""
    try:
        parse_gpu_report(REPORT[:at] + REPORT[at + size :])
    except ValueError as e:
        assert str(e)
