/** The catalogue of prompts in MCP's form: clients show them as slash commands. */
import {
  type GetPromptRequest,
  type GetPromptResult,
  INVALID_PARAMS,
  type ListPromptsResult,
  ProtocolError,
} from "@modelcontextprotocol/server";
import { TOOL_SETS, type ToolSet } from "../../../shared/api/mcp/more-tools.ts";
import { PROMPTS, promptNamed } from "../../../shared/prompts/catalogue.ts";
import { FILLINGS, fill, toolsOf } from "../../../shared/prompts/prompt.ts";

const KNOWN = new Set(TOOL_SETS.all.tools.keys());

/** The prompts that a client can follow with its tools. */
function listed({ tools }: (typeof TOOL_SETS)[ToolSet]): ListPromptsResult["prompts"] {
  const can = PROMPTS.filter((prompt) => toolsOf(prompt, KNOWN).every((name) => tools.has(name)));
  return can.map(({ name, title, about, takes }) => ({
    name,
    title,
    description: about,
    arguments: takes.map((each) => ({ name: each, description: FILLINGS[each].about, required: false })),
  }));
}

export const LISTED_PROMPTS: Record<ToolSet, ListPromptsResult["prompts"]> = {
  usual: listed(TOOL_SETS.usual),
  small: listed(TOOL_SETS.small),
  all: listed(TOOL_SETS.all),
};

/** Throws if the prompt is unknown. */
export function getPrompt({ params }: GetPromptRequest): GetPromptResult {
  const prompt = promptNamed(params.name);
  if (!prompt) throw new ProtocolError(INVALID_PARAMS, `There is no prompt ${params.name.slice(0, 128)}.`);
  const text = fill(prompt, params.arguments ?? {});
  return { description: prompt.about, messages: [{ role: "user", content: { type: "text", text } }] };
}
