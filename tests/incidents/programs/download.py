"""Downloads a data set before the training."""

import logging
import time
import urllib.request

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("train")
for attempt in range(3):
    try:
        log.info("downloading the data set, attempt %d", attempt + 1)
        urllib.request.urlretrieve("https://data.example.org/sets/flowers.tar", "flowers.tar")
        break
    except OSError as e:
        log.warning("download failed: %s", e)
        time.sleep(1)
        if attempt == 2:
            raise
