/** Prompts for an agent that fit the current page: from the catalogue, filled in with the page's names. */
import { PROMPTS } from "../../../shared/prompts/catalogue.ts";
import { fill, type Kind } from "../../../shared/prompts/prompt.ts";
import { pathOf } from "../data/api.ts";
import { Prompt } from "./parts.tsx";

const DOES: Record<Kind, string> = {
  ask: "reads only",
  diagnose: "reads only",
  debug: "may change things",
  plan: "may create things",
};

interface Given {
  room?: string | undefined;
  agent?: string | undefined;
}

/** `names`: names of the catalogue, in display order. */
export function Ask({ names, given = {} }: { names: readonly string[]; given?: Given }) {
  const known = {
    ...(given.room === undefined ? {} : { room: given.room }),
    ...(given.agent === undefined ? {} : { agent: given.agent }),
  };
  const prompts = names.flatMap((name) => PROMPTS.filter((each) => each.name === name));
  return (
    <section aria-labelledby="ask-title">
      <h2 id="ask-title">
        Ask your agent <a href={pathOf("/prompts", known)}>all prompts</a>
      </h2>
      {prompts.map((prompt) => (
        <Prompt key={prompt.name} text={fill(prompt, known)} about={`${prompt.kind} · ${DOES[prompt.kind]}`}>
          “{prompt.title}” {prompt.about}
        </Prompt>
      ))}
    </section>
  );
}
