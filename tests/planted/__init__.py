"""Planted histories: a rule's blocks inside 60 to 150 turns, and the doors that they are played through.

The provider signs each answer by the request that it got, so each play is a loop: a door makes the view of the history
so far, the provider takes or refuses it, and answers with the next step of the plan.
"""
