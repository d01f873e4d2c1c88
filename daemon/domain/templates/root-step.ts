/** Inputs and results of making a root. */
import type { TemplateSource } from "../../../shared/api/templates.ts";
import type { OrgId } from "../../../shared/ids.ts";
import type { BuildDeps, BuildStage } from "./build-deps.ts";
import type { Beside } from "./dockerfile/context.ts";
import type { Dockerfile } from "./dockerfile/read.ts";
import type { Recipe, unpackBuilder } from "./recipe.ts";
import { type Keeping, type Step, stepOf } from "./recipe-steps.ts";
import type { RootCache } from "./root-cache.ts";

/** With the build context of its COPYs; null: no context, or no step copies from it. */
export interface GivenDockerfile {
  file: Dockerfile;
  beside: Beside | null;
}

export interface Root {
  /** Maximum size of the disk. */
  virtualSize: number;
  /** The image that it is made of; null for packages. */
  source: TemplateSource | null;
  /** Steps that run in it before it is booted. */
  steps: Step[];
  /** Number of steps that an earlier build has run. */
  done: number;
  /** Cache for intermediate results; null for packages of a suite, which may be newer each time. */
  keeping: Keeping | null;
}

export interface RootOptions {
  /** Absent: the host's. An organization's images are fetched in a separate network. */
  owner: OrgId | undefined;
  /** Cached roots of the owner's earlier builds. */
  cache: RootCache;
  /** Whether to build from scratch, ignoring the cache. */
  anew: boolean;
  /** Names of the files in /run/secrets of its steps. */
  secrets: readonly string[];
  onProgress(line: string): void;
  onStage(stage: BuildStage): void;
}

export interface RootStep extends RootOptions {
  deps: BuildDeps;
  recipe: Recipe;
  directory: string;
  scratch: string;
  builder: Awaited<ReturnType<typeof unpackBuilder>>;
  own: Record<string, string>;
  dockerfile: GivenDockerfile | null;
}

/** A recipe's own. */
export const stepsIn = ({ steps = [] }: Recipe): Step[] => steps.map(stepOf);
