/** Owns what the process of a build is told, and what it says: lines of JSON between it and whoever has started it. */
import type { BuildFailure } from "../../../../shared/api/template-builds.ts";
import type { TemplateRecord } from "../../../../shared/api/templates.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import type { BuildStage } from "../build-deps.ts";

export interface BuildOrder {
  /** Whose it is to be; null: the host's. */
  org_id: OrgId | null;
  template_id: string;
  /** Text of a recipe, or what is in one; null: the one that comes with roomd. */
  recipe: string | Record<string, unknown> | null;
  /** In place of the recipe's root. */
  dockerfile: string | null;
  /** A tar of what is beside that, in base64. */
  context: string | null;
  args: Record<string, string>;
  /** In base64. */
  secrets: Record<string, string>;
  registry_auth: string | null;
  /** Whether nothing of earlier builds is taken. */
  anew: boolean;
}

/** The last one is `ready` or `failed`. */
export type BuildSaid =
  | { stage: BuildStage }
  | { line: string }
  | { ready: TemplateRecord }
  | { failed: BuildFailure /** What lies behind it: for the host's operator alone. */; why: string };
