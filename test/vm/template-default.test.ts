/** The template `default`: the programs that first commands ask for, and packages that both of its users install. */
import { beforeAll, expect, test } from "vitest";
import type { Json } from "../harness/daemon.ts";
import { withGuests } from "../harness/guests.ts";

const EXEC_MS = 240_000;
const PROGRAMS = [
  ...[
    "pip",
    "npm",
    "npx",
    "node",
    "python",
    "python3",
    "make",
    "gcc",
    "g++",
    "jq",
    "rg",
    "unzip",
    "zip",
    "wget",
    "sudo",
  ],
  ...["tmux", "nano", "git", "curl"],
];

/** Packages of one program each, on the disk: nothing is fetched. */
const MAKE_PACKAGES = `
set -e
mkdir -p /srv/said && cd /srv/said
printf '{"name":"said-by-npm","version":"1.0.0","bin":{"said-by-npm":"said.js"}}' >package.json
printf '#!/usr/bin/env node\\nconsole.log("npm")\\n' >said.js
python3 - <<'MADE'
import zipfile
with zipfile.ZipFile("/srv/said_by_pip-1.0-py3-none-any.whl", "w") as wheel:
    info = "said_by_pip-1.0.dist-info/"
    wheel.writestr("said_by_pip.py", "def main(): print('pip')\\n")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: said-by-pip\\nVersion: 1.0\\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(info + "entry_points.txt", "[console_scripts]\\nsaid-by-pip = said_by_pip:main\\n")
    wheel.writestr(info + "RECORD", "")
MADE
chmod -R a+rX /srv
`;
const INSTALL = `
set -e
pip install --no-index --quiet /srv/said_by_pip-1.0-py3-none-any.whl
npm install --offline --no-audit --no-fund --silent --global /srv/said
`;

withGuests("the template default", {}, (guests) => {
  const run = (body: Record<string, unknown>): Promise<Json> =>
    guests.daemon.exec("t", "a", { timeout_ms: EXEC_MS, ...body });
  const sh = async (command: string, user = "root"): Promise<string> => {
    const done = await run({ command, user });
    expect({ command, ...done }).toMatchObject({ exit_code: 0 });
    return done.stdout.trim();
  };

  beforeAll(async () => {
    await guests.daemon.room("t");
    await guests.daemon.sandbox("t", "a", guests.cid(), { memory_mib: 1024 });
  });

  test("has them", async () => {
    expect(
      (await sh(`for name in ${PROGRAMS.join(" ")}; do command -v "$name" || echo "no $name"; done`)).split("\n"),
    ).toEqual(PROGRAMS.map((name) => expect.stringMatching(new RegExp(`^/.*/${RegExp.escape(name)}$`))));
  });

  test.each(["root", "agent"])("installs packages of pip and npm as %s", { timeout: 2 * EXEC_MS }, async (user) => {
    await sh(MAKE_PACKAGES);
    await sh(INSTALL, user);
    expect(await sh("said-by-pip; said-by-npm", user)).toBe("pip\nnpm");
    await sh(
      "mkdir -p ~/project && cd ~/project && npm install --offline --no-audit --no-fund --silent /srv/said",
      user,
    );
    expect(await sh("cd ~/project && npx said-by-npm", user)).toBe("npm");
    await sh("python3 -m venv ~/venv && ~/venv/bin/pip --version", user);
  });

  test("compiles a program", { timeout: EXEC_MS }, async () => {
    await sh(
      `mkdir -p /tmp/c && cd /tmp/c && printf '#include <stdio.h>\\nint main(void) { puts("made"); }\\n' >made.c && make made`,
    );
    expect(await sh("/tmp/c/made", "agent")).toBe("made");
  });

  test("has git work in a checkout of another user", async () => {
    await sh("cd /mnt/drive && git init --quiet shared");
    expect(await sh("git -C /mnt/drive/shared status --short --branch", "agent")).toMatch(/^## No commits yet/);
  });
});
