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
        ("", "not an XML report"),
        ("<nvidia_smi_log>", "incomplete"),
        ("<nvidia_smi_log><!ENTITY a 'b'></nvidia_smi_log>", "entities"),
        ("<nvidia_smi_log></gpu></nvidia_smi_log>", "has no opening tag"),
        ("<nvidia_smi_log><gpu></nvidia_smi_log>", "has no opening tag"),
        (f"<nvidia_smi_log>{'<a>' * 100}</nvidia_smi_log>", "too deeply"),
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


# The form of driver 535, an A100 of eight; the first GPU has errors that it could not correct.
DRIVER_535 = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
\t<timestamp>Thu Sep 12 05:57:33 2024</timestamp>
\t<driver_version>535.161.08</driver_version>
\t<attached_gpus>2</attached_gpus>
\t<gpu id="00000004:00:00.0">
\t\t<mig_devices>
\t\t\tNone
\t\t</mig_devices>
\t\t<minor_number>3</minor_number>
\t\t<ecc_errors>
\t\t\t<volatile>
\t\t\t\t<sram_correctable>0</sram_correctable>
\t\t\t\t<sram_uncorrectable_parity>{parity}</sram_uncorrectable_parity>
\t\t\t\t<sram_uncorrectable_secded>{secded}</sram_uncorrectable_secded>
\t\t\t\t<dram_correctable>43608</dram_correctable>
\t\t\t\t<dram_uncorrectable>{dram}</dram_uncorrectable>
\t\t\t</volatile>
\t\t\t<aggregate>
\t\t\t\t<dram_correctable>195825</dram_correctable>
\t\t\t\t<dram_uncorrectable>4</dram_uncorrectable>
\t\t\t\t<sram_threshold_exceeded>No</sram_threshold_exceeded>
\t\t\t</aggregate>
\t\t\t<aggregate_uncorrectable_sram_sources>
\t\t\t\t<sram_l2>0</sram_l2>
\t\t\t</aggregate_uncorrectable_sram_sources>
\t\t</ecc_errors>
\t</gpu>
\t<gpu id="00000005:00:00.0">
\t\t<ecc_errors>
\t\t\t<volatile>
\t\t\t\t<dram_uncorrectable>N/A</dram_uncorrectable>
\t\t\t</volatile>
\t\t</ecc_errors>
\t</gpu>
</nvidia_smi_log>
"""


@pytest.mark.parametrize(
    ("parity", "secded", "dram", "errors"),
    [("0", "0", "2", 2), ("1", "2", "4", 7), ("N/A", "3", "0", 3), ("0", "0", "0", 0)],
)
def test_errors_of_a_report_of_2024(parity: str, secded: str, dram: str, errors: int) -> None:
    """The three counts of a GPU are added, as the living fork adds them; corrected ones are not."""
    report = DRIVER_535.format(parity=parity, secded=secded, dram=dram)
    first, second = parse_gpu_report(report).all("gpu")
    assert uncorrectable_errors(first, "volatile") == errors
    assert uncorrectable_errors(first, "aggregate") == 4
    assert uncorrectable_errors(second, "volatile") == 0
