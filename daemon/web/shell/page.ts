/** Props of a page of the hub. */
export interface PageProps {
  /** Parameters of the path. */
  params: Record<string, string>;
}
