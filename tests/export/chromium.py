# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium over its DevTools pipe (descriptors 3 and 4, messages ended by a zero)."""

import base64
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import tempfile


def find():
    return shutil.which("chromium") or shutil.which("google-chrome")


class Page:
    """One tab. Errors of the page's own script are kept in `errors`."""

    def __init__(self, program, width=1400, height=1000):
        self.profile = tempfile.mkdtemp(prefix="vramscope-chromium-")
        theirs_in, self.send_to = os.pipe()
        self.read_from, theirs_out = os.pipe()
        theirs = [fcntl.fcntl(one, fcntl.F_DUPFD, 20) for one in (theirs_in, theirs_out)]
        os.close(theirs_in)
        os.close(theirs_out)
        words = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
                 "--hide-scrollbars", "--force-device-scale-factor=1", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update",
                 f"--user-data-dir={self.profile}", f"--window-size={width},{height}", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{theirs[0]} 4>&{theirs[1]}', "bash", *words],
            pass_fds=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)
        for one in theirs:
            os.close(one)
        self.buffer, self.number, self.session = b"", 0, None
        self.errors, self.requests, self.events = [], [], []
        target = [one for one in self.ask("Target.getTargets")["targetInfos"] if one["type"] == "page"][0]
        self.session = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.ask(domain + ".enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def take(self):
        while b"\0" not in self.buffer:
            part = os.read(self.read_from, 1 << 16)
            if not part:
                raise RuntimeError("Chromium ended")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(message["params"]["exceptionDetails"])
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        if message.get("method"):
            self.events.append(message["method"])
        return message

    def ask(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.send_to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.take()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path):
        self.events.clear()
        self.ask("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        while "Page.loadEventFired" not in self.events:
            self.take()

    def run(self, script):
        """The value of an expression; a promise is waited for."""
        got = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def frame(self):
        """Until what was asked for is drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def mouse(self, kind, x, y, **more):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.frame()

    def key(self, key):
        text = key if len(key) == 1 else ""
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.frame()

    def shot(self, path, whole=False):
        got = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(got["data"]))

    def close(self):
        try:
            self.session = None
            self.ask("Browser.close")
        except (OSError, RuntimeError):
            pass
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.send_to)
        os.close(self.read_from)
        shutil.rmtree(self.profile, ignore_errors=True)
