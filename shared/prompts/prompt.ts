/** Type of a prompt: a text for a model with roomd's tools, with placeholders for names. */

/** ask: report the state. diagnose: investigate, change nothing. debug: find and fix. plan: before anything is created. */
export const KINDS = ["ask", "diagnose", "debug", "plan"] as const;
export type Kind = (typeof KINDS)[number];

/** Placeholders of a prompt, and their text if no value is given. */
export const FILLINGS = {
  room: {
    about: "id of the room",
    unknown: "(ask me which; `room_list` shows them)",
  },
  agent: {
    about: "id of the agent",
    unknown: "(ask me which; `room_get` shows them)",
  },
  goal: { about: "the intended result, in a sentence", unknown: "the goal that I tell you next" },
  agents: { about: "how many agents", unknown: "several" },
} as const;
export type Filling = keyof typeof FILLINGS;

export interface Prompt {
  /** The name in a slash command, and in a file's name. */
  name: string;
  kind: Kind;
  title: string;
  /** The result, in a sentence. */
  about: string;
  takes: readonly Filling[];
  /** With placeholders such as `{room}` for names, and tools in backquotes. */
  text: string;
}

const PLACE = /\{(room|agent|goal|agents)\}/g;

/** The text with the given values, each truncated and on one line. */
export function fill({ text }: Prompt, given: Partial<Record<Filling, string>>): string {
  return text.replaceAll(PLACE, (_, name: Filling) => {
    const value = given[name]
      ?.replaceAll(/[\s`]+/g, " ")
      .trim()
      .slice(0, 200);
    if (!value) return FILLINGS[name].unknown;
    return name === "goal" || name === "agents" ? value : `\`${value}\``;
  });
}

/** The tools that the prompt names, in the order of their first mention. */
export function toolsOf({ text }: Prompt, tools: ReadonlySet<string>): string[] {
  const named = [...text.matchAll(/`([a-z_]+)`/g)].flatMap(([, name = ""]) => (tools.has(name) ? [name] : []));
  return [...new Set(named)];
}
