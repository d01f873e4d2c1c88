/** Owns the prompts on the pages of an agent, with its names filled in. */
import { PROMPTS } from "../../../shared/prompts/catalogue.ts";
import { fill } from "../../../shared/prompts/prompt.ts";
import { Prompt } from "../parts/parts.tsx";

export function Prompts({ names, room, agent }: { names: readonly string[]; room: string; agent: string }) {
  const prompts = names.flatMap((name) => PROMPTS.filter((each) => each.name === name));
  return (
    <>
      <h2>Ask your agent</h2>
      {prompts.map((prompt) => (
        <Prompt
          key={prompt.name}
          text={fill(prompt, { room, agent })}
          about={
            prompt.kind === "debug" ? `${prompt.kind} · asks before it changes anything` : `${prompt.kind} · reads only`
          }
        >
          “{prompt.title}” {prompt.about}
        </Prompt>
      ))}
    </>
  );
}
