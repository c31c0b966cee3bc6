# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A package for Nix, without HIP, of the tree that this file is in: nix-build docs/packaging
# The tests check its syntax and version. They do not build it: Debian has no nixpkgs.
{ pkgs ? import <nixpkgs> { } }:

pkgs.stdenv.mkDerivation {
  pname = "gpuarb";
  version = "0.3.0";
  src = ../..;

  nativeBuildInputs = with pkgs; [ meson ninja pkg-config python3 scdoc ];
  buildInputs = with pkgs; [ dbus inih json_c systemd ];
  postPatch = "patchShebangs docs";
  mesonFlags = [
    "-Dtests=false" "-Dman=enabled" "-Dhip=disabled" "-Dprobe=disabled" "-Dbpf=disabled"
    "-Dexporter=disabled" "-Dslurm=disabled" "-Dmusl=disabled" "-Dpython=disabled"
  ];

  meta = {
    description = "Arbiter of AMD GPUs among processes";
    license = pkgs.lib.licenses.lgpl21Plus;
    platforms = pkgs.lib.platforms.linux;
    mainProgram = "gpuarbctl";
  };
}
