/** Protocol between a build process and its parent: the order, and the messages in return, as JSON lines. */
import type { BuildFailure } from "../../../../shared/api/template-builds.ts";
import type { TemplateRecord } from "../../../../shared/api/templates.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import type { BuildStage } from "../build-deps.ts";

export interface BuildOrder {
  /** Owner of the template; null: the host. */
  org_id: OrgId | null;
  template_id: string;
  /** Text of a recipe, or its parsed fields; null: the recipe shipped with roomd. */
  recipe: string | Record<string, unknown> | null;
  /** Replaces the recipe's root. */
  dockerfile: string | null;
  /** A tar of its build context, in base64. */
  context: string | null;
  args: Record<string, string>;
  /** In base64. */
  secrets: Record<string, string>;
  registry_auth: string | null;
  /** Whether results of earlier builds are ignored. */
  anew: boolean;
}

/** The last message is `ready` or `failed`. */
export type BuildSaid =
  | { stage: BuildStage }
  | { line: string }
  | { ready: TemplateRecord }
  | { failed: BuildFailure /** The cause: for the host's operator only. */; why: string };
