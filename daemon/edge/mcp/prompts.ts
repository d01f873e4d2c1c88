/** Owns the catalogue of prompts as MCP has it: clients show them as commands with a slash. */
import {
  type GetPromptRequest,
  type GetPromptResult,
  INVALID_PARAMS,
  type ListPromptsResult,
  ProtocolError,
} from "@modelcontextprotocol/server";
import { PROMPTS, promptNamed } from "../../../shared/prompts/catalogue.ts";
import { FILLINGS, fill } from "../../../shared/prompts/prompt.ts";

export const LISTED_PROMPTS: ListPromptsResult["prompts"] = PROMPTS.map(({ name, title, about, takes }) => ({
  name,
  title,
  description: about,
  arguments: takes.map((each) => ({ name: each, description: FILLINGS[each].about, required: false })),
}));

/** Throws where there is no such prompt. */
export function getPrompt({ params }: GetPromptRequest): GetPromptResult {
  const prompt = promptNamed(params.name);
  if (!prompt) throw new ProtocolError(INVALID_PARAMS, `There is no prompt ${params.name.slice(0, 128)}.`);
  const text = fill(prompt, params.arguments ?? {});
  return { description: prompt.about, messages: [{ role: "user", content: { type: "text", text } }] };
}
