/** The catalogue as a skill: a directory that coding agents read automatically, with one file of instructions and one per prompt. */
import { INSTRUCTIONS } from "../api/mcp/tools.ts";
import { PROMPTS } from "./catalogue.ts";
import { FILLINGS, fill, KINDS, type Prompt } from "./prompt.ts";

export const SKILL = "roomd";
const WHEN = {
  ask: "To answer",
  diagnose: "To find out",
  debug: "To fix",
  plan: "Before you create resources",
} as const;

/** Below the skill's directory. */
export interface SkillFile {
  path: string;
  text: string;
}

export function skillFiles(): SkillFile[] {
  const lists = KINDS.map((kind) => {
    const items = PROMPTS.filter((each) => each.kind === kind).map(
      ({ name, title, about }) => `- [${title}](tasks/${name}.md) ${about}`,
    );
    return `## ${WHEN[kind]}\n\n${items.join("\n")}`;
  });
  const head = [
    "---",
    `name: ${SKILL}`,
    "description: Rooms of isolated sandboxes (virtual machines) for groups of AI agents. Use to run work in a sandbox, to let several agents work together, or to answer questions on the activity, cost, waits and failures of agents in rooms.",
    "---",
  ];
  const intro = "The tools are those of the MCP server roomd; the same by the command `roomd`, see `roomd --help`.";
  const text = `${head.join("\n")}\n\n# roomd\n\n${INSTRUCTIONS}\n\n${intro}\n\n${lists.join("\n\n")}\n`;
  return [{ path: "SKILL.md", text }, ...PROMPTS.map(taskFile)];
}

function taskFile(prompt: Prompt): SkillFile {
  const names = prompt.takes.map((each) => `- ${each}: ${FILLINGS[each].about}`);
  const needs = names.length === 0 ? "" : `\nParameters; request any that are unclear:\n\n${names.join("\n")}\n`;
  return {
    path: `tasks/${prompt.name}.md`,
    text: `# ${prompt.title}\n\n${prompt.about}\n${needs}\n${fill(prompt, {})}\n`,
  };
}
