/** Owns what making a root is given, and what it gives. */
import type { TemplateSource } from "../../../shared/api/templates.ts";
import type { OrgId } from "../../../shared/ids.ts";
import type { BuildDeps, BuildStage } from "./build-deps.ts";
import type { Beside } from "./dockerfile/context.ts";
import type { Dockerfile } from "./dockerfile/read.ts";
import type { Recipe, unpackBuilder } from "./recipe.ts";
import { type Keeping, type Step, stepOf } from "./recipe-steps.ts";
import type { RootCache } from "./root-cache.ts";

/** With what its COPYs take from; null: nothing is beside it, or it has none. */
export interface GivenDockerfile {
  file: Dockerfile;
  beside: Beside | null;
}

export interface Root {
  /** What the disk may grow to. */
  virtualSize: number;
  /** Of what image it is; null for packages. */
  source: TemplateSource | null;
  /** What is run in it before it is booted. */
  steps: Step[];
  /** So many of them were run by an earlier build. */
  done: number;
  /** Where it is kept after some of them; null: where the packages of a suite are asked for, they may be newer each time. */
  keeping: Keeping | null;
}

export interface RootOptions {
  /** Absent: the host's. An organization's images are fetched in a network of their own. */
  owner: OrgId | undefined;
  /** Of earlier builds of its owner. */
  cache: RootCache;
  /** Whether it is made from the beginning, whatever is there. */
  anew: boolean;
  /** Names of what its steps find in /run/secrets. */
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
