/** The programs of examples/ and of README.md with real guests: each prints the output promised by its text, and leaves no room behind. */
import { execFileSync, spawn } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BINARY } from "../../harness/daemon.ts";
import { withGuests } from "../../harness/guests.ts";

const DIRECTORY = resolve(import.meta.dirname, "../../../examples");
const README = readFileSync(resolve(import.meta.dirname, "../../../README.md"), "utf8");
const PYTHON_SDK = resolve(import.meta.dirname, "../../../sdk/python/src");
const CHART = "chart.svg";
/** Lines that each program prints. `browser.test.ts` runs `browser.ts`: its template takes minutes to build. */
const PRINTED: Record<string, readonly string[]> = {
  "best-of-n.ts": ["before: fails", "first: fails", "second: passes", "third: fails", "kept: print(sum(int(word) for"],
  "data-analysis.ts": ["best month: Mar with 180", `chart: ${CHART}`],
  "from-e2b.ts": ["exit 0 42", "main.py"],
  "group-of-three.ts": [
    "worker: write sum.sh, which adds its arguments",
    "planner: approved true",
    "all three are done",
  ],
  "long-job.ts": ["step 1", "step 5", "finished", "exit 0"],
  "untrusted-code.ts": ["working 2", "no network: URLError", "stopped after 10 s"],
  "web-preview.ts": ["200 <h1>Made in a sandbox</h1>"],
};

/** The first block of README.md in this language. */
function firstOfReadme(language: string): string {
  const [, block] = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "ms").exec(README) ?? [];
  if (block === undefined) throw new Error(`README.md has no block of ${language}`);
  return block;
}

async function run(
  daemon: { url: string; apiKey: string },
  directory: string,
  name: string,
  [program, ...before]: readonly [string, ...string[]] = [process.execPath],
): Promise<string> {
  const child = spawn(program, [...before, name], {
    cwd: directory,
    env: { ...process.env, ROOMD_URL: daemon.url, ROOMD_API_KEY: daemon.apiKey, PYTHONPATH: PYTHON_SDK },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      text += chunk;
    });
  }
  const status = await new Promise((done) => child.once("close", done));
  return `${text}\nstatus ${status}`;
}

test("every program has a test", () => {
  const programs = readdirSync(DIRECTORY).filter((name) => name.endsWith(".ts"));
  expect([...Object.keys(PRINTED), "browser.ts"].sort()).toEqual(programs.sort());
});

withGuests("examples", {}, (guests) => {
  /** A project of a user: the programs, and the package as the service serves it. */
  let project: string;
  beforeAll(() => {
    project = mkdtempSync(join(tmpdir(), "roomd-examples-"));
    for (const name of Object.keys(PRINTED)) copyFileSync(join(DIRECTORY, name), join(project, name));
    writeFileSync(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }));
    const install = ["install", "--no-audit", "--no-fund", "--silent", `${guests.daemon.url}/sdk/roomd-sdk.tgz`];
    execFileSync("npm", install, { cwd: project });
  });
  afterAll(() => rmSync(project, { recursive: true, force: true }));

  test.each(Object.entries(PRINTED))("%s", async (name, lines) => {
    const text = await run(guests.daemon, project, name);
    for (const line of lines) expect(text).toContain(line);
    expect(text).toContain("status 0");
    expect((await guests.daemon.ok("GET", "/v1/rooms?state=active")).items).toEqual([]);
    if (name === "data-analysis.ts")
      expect(existsSync(join(project, CHART)) && readFileSync(join(project, CHART), "utf8")).toContain("<rect");
  });

  describe("README.md", () => {
    const printed = (text: string) => {
      expect(text).toMatch(/^0 Python 3\./);
      // The copies differ after the fork.
      expect(text).toContain("main.py");
      expect(text).not.toContain("answer");
      expect(text).toContain("status 0");
    };
    test("its TypeScript", async () => {
      writeFileSync(join(project, "readme.ts"), firstOfReadme("ts"));
      printed(await run(guests.daemon, project, "readme.ts"));
    });

    test("its Python", async () => {
      writeFileSync(join(project, "readme.py"), firstOfReadme("python"));
      printed(await run(guests.daemon, project, "readme.py", ["python3"]));
    });

    test("its first command, with the output that it shows", async () => {
      mkdirSync(join(project, "bin"), { recursive: true });
      symlinkSync(BINARY, join(project, "bin", "roomd"));
      const line = `PATH=${join(project, "bin")}:$PATH; ${firstOfReadme("sh")}`;
      expect(await run(guests.daemon, project, line, ["sh", "-c"])).toBe(`${firstOfReadme("text")}\nstatus 0`);
    });
  });
});
