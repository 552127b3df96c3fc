#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lines of `vramscope env` start a program, and it is recorded: torchrun itself where PyTorch is; stand-ins
of srun, docker and apptainer that do with variables and mounts what their manuals say (env_world/); a pod's
specification read by PyYAML and its container started so; Ray's dictionary
given to a worker. What the place already preloads is the simulated device: if it were lost, nothing would run.

env_start.py --vramscope PROGRAM [--torchrun]: --torchrun only that (VRAMSCOPE_TORCH_PYTHON)
Not tried: Slurm, Docker, Kubernetes, Apptainer and Ray themselves, several nodes, an image without glibc."""
import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SKIPPED = 77
sys.path.insert(0, str(HERE / "env_world"))
import container  # pylint: disable=wrong-import-position

# Kubernetes' API reference, v1: the fields used here, and what they hold.
POD = {"spec": {"containers": [{"name": str, "env": [{"name": str, "value": str}],
                                "volumeMounts": [{"name": str, "mountPath": str, "readOnly": bool}]}],
                "volumes": [{"name": str, "hostPath": {"path": str, "type": str}}]}}
faults = []


class Place:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.build = program.parents[1]
        self.job = self.build / "bin/training-like"

    def lines(self, *options):
        done = subprocess.run([self.program, "env", "-o", "traces/", *options], cwd=self.folder, check=True,
                              env={"PATH": os.environ["PATH"], "VRAMSCOPE_DEPTH": "9"}, capture_output=True, text=True)
        return done.stdout

    def run(self, what, text, *devices, status=0):
        """Runs a shell script on the simulated device, where `$IMAGE_PRELOAD` is what a container's image preloads;
        the reports of the traces it left, by rank."""
        for trace in self.folder.glob("traces/*"):
            trace.unlink()
        environment = {"PATH": f"{HERE}/env_world:{os.environ['PATH']}", "VRAMSCOPE_BUILD": str(self.build),
                       "HOME": str(self.folder), "OMP_NUM_THREADS": "1"}
        script = 'export IMAGE_PRELOAD=$LD_PRELOAD\n' + text
        done = subprocess.run([ROOT / "scripts/simgpu", *devices, "--", "bash", "-ec", script], cwd=self.folder,
                              env=environment, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != status:
            faults.append(f"{what}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        reports = [json.loads(subprocess.run([self.program, "report", "--json", trace], check=True, capture_output=True,
                                             text=True).stdout) for trace in self.folder.glob("traces/*.vscope")]
        return sorted(reports, key=lambda report: report["process"]["rank"] or 0)


def check(what, reports, ranks):
    found = [report["process"]["rank"] for report in reports]
    if found != ranks:
        faults.append(f"{what}: traces of ranks {found}, not {ranks}")
    for report in reports:
        events = report["hooks"]["driver_events"] + report["hooks"]["framework_events"]
        if not events or not report["trace"]["complete"] or report["process"]["settings"].get("VRAMSCOPE_DEPTH") != "9":
            faults.append(f"{what}: {events} events, {report['trace']}, {report['process']['settings']}")


def check_slurm(place):
    lines = place.lines("--slurm")
    # A list of its own takes the device along, so that what is missing is our lines' alone.
    own = "PATH,SIMGPU_STATE,SIMGPU_START_NS,LD_PRELOAD=$IMAGE_PRELOAD"
    for options, ranks in (("", [0, 1]), ("--export=ALL,A=1", [0, 1]), (f"--export={own}", [])):
        reports = place.run(f"srun {options}", f"{lines}\nsrun --ntasks=2 {options} {place.job} 3 1")
        check(f"srun {options}", reports, ranks)


def check_docker(place):
    text = place.lines("--docker").replace(" -- COMMAND", f" -- {place.job} 3 1")
    check("docker", place.run("docker", text), [None])


def check_apptainer(place):
    before = "export APPTAINERENV_LD_PRELOAD=$IMAGE_PRELOAD\n"
    text = place.lines("--apptainer") + f"apptainer exec --nv IMAGE {place.job} 3 1"
    check("apptainer", place.run("apptainer", before + text), [None])


# The module "ray" of a test: a worker has the caller's variables and those of the runtime environment.
RAY = """import json, os, subprocess, sys, types
def init(runtime_env):
    variables = json.loads(json.dumps(runtime_env)).pop("env_vars")
    assert list(runtime_env) == ["env_vars"] and all(type(text) is str for text in variables.values()), runtime_env
    subprocess.run(JOB, env={**os.environ, **variables}, check=True)
sys.modules["ray"] = types.SimpleNamespace(init=init)
"""


def check_ray(place):
    text = RAY.replace("JOB", repr([str(place.job), "3", "1"])) + place.lines("--ray")
    check("ray", place.run("ray", f"{sys.executable} -c {shlex.quote(text)}"), [None])


def shape_faults(value, shape, where):
    """What of a document a shape of fields and types does not have."""
    if isinstance(shape, dict):
        for name, part in value.items() if isinstance(value, dict) else ():
            if name not in shape:
                yield f"{where}: no field {name}"
            else:
                yield from shape_faults(part, shape[name], f"{where}.{name}")
    elif isinstance(shape, list):
        for part in value:
            yield from shape_faults(part, shape[0], where)
    if not isinstance(value, shape if isinstance(shape, type) else type(shape)):
        yield f"{where}: {value!r} is no {shape}"


def check_k8s(place):
    import yaml  # pylint: disable=import-outside-toplevel
    pod = yaml.safe_load(place.lines("--k8s"))
    faults.extend(shape_faults(pod, POD, "pod"))
    (first,), volumes = pod["spec"]["containers"], {v["name"]: v["hostPath"] for v in pod["spec"]["volumes"]}
    # What the node has: our unpacked package where the volume says; DirectoryOrCreate makes the other.
    nodes = {"/opt/vramscope": str(place.build)}
    mounts = [(nodes.get(volumes[mount["name"]]["path"], volumes[mount["name"]]["path"]), mount["mountPath"],
               ["ro"] if mount.get("readOnly") else []) for mount in first["volumeMounts"]]
    (place.folder / "traces").mkdir(exist_ok=True)
    variables = {entry["name"]: entry["value"] for entry in first["env"]}
    text = (f"import os, container; given = {variables!r}\n"
            "image = container.of_image()\n"
            "given['LD_PRELOAD'] += ':' + image.pop('IMAGE_PRELOAD')\n"
            f"raise SystemExit(container.run({mounts!r}, {{**image, **given}}, [{str(place.job)!r}, '3', '1']))\n")
    check("k8s", place.run("k8s", f"PYTHONPATH={HERE}/env_world {sys.executable} -c {shlex.quote(text)}"), [None])


def check_torchrun(place, python):
    text = (f"{place.lines('--torchrun')}\n{python.parent}/torchrun --nproc-per-node 2 "
            f"{ROOT}/tests/torch/programs/ddp.py >/dev/null")
    reports = place.run("torchrun", text, "--devices", "2")
    launcher = [report for report in reports if report["process"]["rank"] is None]
    if len(launcher) > 1 or any(report["devices"] for report in launcher):
        faults.append(f"torchrun itself: {launcher}")
    reports = [report for report in reports if report not in launcher]
    check("torchrun", reports, [0, 1])
    for report in reports:
        if report["process"]["world_size"] != 2 or not report["hooks"]["framework_events"]:
            faults.append(f"torchrun: {report['process']}, {report['hooks']}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramscope", required=True)
    parser.add_argument("--torchrun", action="store_true")
    arguments = parser.parse_args()
    python = os.environ.get("VRAMSCOPE_TORCH_PYTHON", "")
    if arguments.torchrun and not python:
        print("no PyTorch: set VRAMSCOPE_TORCH_PYTHON (scripts/torch-env prints it)")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="vramscope-env-") as name:
        place = Place(pathlib.Path(arguments.vramscope).resolve(), pathlib.Path(name).resolve())
        if arguments.torchrun:
            check_torchrun(place, pathlib.Path(python))
        else:
            check_slurm(place)
            check_ray(place)
            if container.supported():
                for check_one in (check_docker, check_apptainer, check_k8s):
                    check_one(place)
            else:
                print("docker, apptainer, k8s: not tried, namespaces are not allowed here")
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
