/** Owns what a page of the hub is given. */
export interface PageProps {
  /** What the path names. */
  params: Record<string, string>;
}
