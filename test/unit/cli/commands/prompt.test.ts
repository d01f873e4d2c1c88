/** Prompts and skills on the command line: the output, and the directories in which the skill is installed, replaced and removed. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { PROMPTS } from "../../../../shared/prompts/catalogue.ts";
import { FILLINGS, KINDS } from "../../../../shared/prompts/prompt.ts";
import { skillFiles } from "../../../../shared/prompts/skills.ts";
import { run } from "../cli-fixture.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "roomd-skills-"));
});
afterEach(() => rmSync(home, { recursive: true }));

test("the catalogue has each kind, names that fit a command, and placeholders for the arguments", () => {
  expect(PROMPTS.length).toBeGreaterThanOrEqual(20);
  expect(new Set(PROMPTS.map(({ name }) => name)).size).toBe(PROMPTS.length);
  for (const kind of KINDS) expect(PROMPTS.some((each) => each.kind === kind)).toBe(true);
  for (const { name, takes, text } of PROMPTS) {
    expect(name).toMatch(/^[a-z]+(?:-[a-z]+)*$/);
    const places = Object.keys(FILLINGS).filter((each) => text.includes(`{${each}}`));
    expect([name, places.sort()]).toEqual([name, [...takes].sort()]);
  }
});

/** Directory in which each agent looks for skills, below the home directory, as its vendor documents it. */
const SKILLS_OF = {
  agents: ".agents/skills",
  "claude-code": ".claude/skills",
  codex: ".codex/skills",
  cursor: ".cursor/skills",
  gemini: ".gemini/skills",
  opencode: ".config/opencode/skills",
};
/** Bun itself keeps nothing there. */
const atHome = () => ({ env: { HOME: home, BUN_RUNTIME_TRANSPILER_CACHE_PATH: "0" } });
/** Every file below the home directory. */
const filesAtHome = () =>
  readdirSync(home, { recursive: true, withFileTypes: true }).flatMap((each) =>
    each.isFile() ? [relative(home, join(each.parentPath, each.name))] : [],
  );

test.each(Object.entries(SKILLS_OF))(
  "the skill for %s is installed in ~/%s and removed, and no other file changes",
  async (name, place) => {
    const others = Object.values(SKILLS_OF).filter((each) => each !== place);
    for (const each of others) mkdirSync(join(home, each), { recursive: true });
    const put = await run(["skills", "install", "--for", name, "--json"], atHome());
    expect(JSON.parse(put.stdout)).toEqual({ directories: [join(home, place, "roomd")] });
    const expected = skillFiles().map(({ path }) => join(place, "roomd", path));
    expect(filesAtHome().sort()).toEqual(expected.sort());
    expect((await run(["skills", "remove", "--for", name], atHome())).status).toBe(0);
    expect(filesAtHome()).toEqual([]);
  },
);

test("without a named agent, the skill is installed in existing agent directories, otherwise in ~/.agents", async () => {
  const put = async () => JSON.parse((await run(["skills", "install", "--json"], atHome())).stdout).directories;
  expect(await put()).toEqual([join(home, ".agents/skills/roomd")]);
  rmSync(join(home, ".agents"), { recursive: true });
  for (const each of [".claude", ".config/opencode"]) mkdirSync(join(home, each), { recursive: true });
  expect(await put()).toEqual([join(home, ".claude/skills/roomd"), join(home, ".config/opencode/skills/roomd")]);
  expect((await run(["skills", "install", "--for", "nobody"], atHome())).status).toBe(2);
});

test("a prompt is printed with the given names", async () => {
  const shown = await run(["prompt", "show", "why-does-it-wait", "--room", "build-42", "--agent", "worker"]);
  expect(shown).toMatchObject({ status: 0, stdout: expect.stringMatching(/`worker`.*`build-42`/) });
  expect(await run(["prompt", "show", "none"])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("prompt list"),
  });
  const listed = JSON.parse((await run(["prompt", "list", "--kind", "plan", "--json"])).stdout);
  expect(listed.items.every(({ kind }: { kind: string }) => kind === "plan")).toBe(true);
});

test("the skill is installed, replaced and removed, and nothing else changes", async () => {
  const skill = join(home, "roomd");
  expect((await run(["skills", "install", "--dir", home])).status).toBe(0);
  expect(readFileSync(join(skill, "SKILL.md"), "utf8")).toMatch(/^---\nname: roomd\ndescription: .+\n---\n/);
  expect(readdirSync(join(skill, "tasks"))).toHaveLength(PROMPTS.length);
  writeFileSync(join(skill, "tasks", "older.md"), "");
  expect((await run(["skills", "install", "--dir", home])).status).toBe(0);
  expect(existsSync(join(skill, "tasks", "older.md"))).toBe(false);
  expect((await run(["skills", "remove", "--dir", home])).status).toBe(0);
  expect(readdirSync(home)).toEqual([]);

  mkdirSync(skill);
  writeFileSync(join(skill, "mine"), "");
  for (const verb of ["install", "remove"]) {
    expect(await run(["skills", verb, "--dir", home])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(skill),
    });
  }
  expect(readdirSync(skill)).toEqual(["mine"]);
});
